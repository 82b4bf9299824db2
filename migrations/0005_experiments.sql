-- A submission. `plan` is what was asked for, as JSON; its runs are rows of `run`.

create table experiment (
    id text primary key,
    name text not null,
    plan text not null,
    created_by text not null,
    created_at integer not null
) strict;
