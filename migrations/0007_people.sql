-- What people manage themselves. Passkeys, sessions and invitations get ids of their own, to be named in addresses
-- without showing what they are known by; invitations can mend a person's access; tokens belong to whom made them; and
-- what was done is kept.

create table passkey_with_id (
    id integer primary key autoincrement,
    credential_id blob not null unique,
    user_id text not null references user (id) on delete cascade,
    name text not null,
    credential text not null,
    created_at integer not null,
    last_used_at integer
) strict;

insert into passkey_with_id (credential_id, user_id, name, credential, created_at, last_used_at)
select credential_id, user_id, name, credential, created_at, last_used_at from passkey order by created_at;
drop table passkey;
alter table passkey_with_id rename to passkey;
create index passkey_user on passkey (user_id);

create table session_with_id (
    id integer primary key autoincrement,
    hash blob not null unique,
    user_id text not null references user (id) on delete cascade,
    device text not null,
    created_at integer not null,
    last_used_at integer not null,
    expires_at integer not null
) strict;

insert into session_with_id (hash, user_id, device, created_at, last_used_at, expires_at)
select hash, user_id, device, created_at, last_used_at, expires_at from session order by created_at;
drop table session;
alter table session_with_id rename to session;
create index session_user on session (user_id);

-- With a person it gives that one another passkey instead of making somebody new.
create table invite_with_id (
    id integer primary key autoincrement,
    hash blob not null unique,
    role text not null check (role in ('viewer', 'member', 'admin')),
    user_id text references user (id) on delete cascade,
    ends_passkeys integer not null default 0 check (ends_passkeys in (0, 1)),
    created_by text,
    created_at integer not null,
    expires_at integer not null,
    used_at integer,
    withdrawn_at integer
) strict;

insert into invite_with_id (hash, role, created_at, expires_at, used_at)
select hash, role, created_at, expires_at, used_at from invite order by created_at;
drop table invite;
alter table invite_with_id rename to invite;

-- Null where the owner of the data folder made it.
alter table token add column user_id text references user (id) on delete cascade;
create index token_user on token (user_id);

-- Written in the transaction of the deed. Names, not references: it outlives whom and what it names.
create table audit (
    id integer primary key autoincrement,
    at integer not null,
    who text not null,
    what text not null,
    object text not null,
    detail text not null default '{}',
    address text
) strict;

create index audit_who on audit (who, id);
create index audit_what on audit (what, id);
create index audit_at on audit (at);
