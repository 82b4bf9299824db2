-- Named settings of the form for a new run, shared by all users.
create table preset (
    name text primary key,
    -- The settings as the body of a submission; lists may be empty.
    plan text not null check (json_valid(plan)),
    created_by text not null,
    -- The user who may change it; none after that user was removed.
    user_id text references user (id) on delete set null,
    saved_at integer not null
) strict;
