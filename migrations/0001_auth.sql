-- Who may do what. Secrets are stored as SHA-256 only; times are unix milliseconds.

create table user (
    id text primary key,
    name text not null unique,
    role text not null check (role in ('viewer', 'member', 'admin')),
    created_at integer not null
) strict;

create table passkey (
    credential_id blob primary key,
    user_id text not null references user (id) on delete cascade,
    name text not null,
    credential text not null,
    created_at integer not null,
    last_used_at integer
) strict;

create index passkey_user on passkey (user_id);

create table invite (
    hash blob primary key,
    role text not null check (role in ('viewer', 'member', 'admin')),
    created_at integer not null,
    expires_at integer not null,
    used_at integer
) strict;

create table session (
    hash blob primary key,
    user_id text not null references user (id) on delete cascade,
    device text not null,
    created_at integer not null,
    last_used_at integer not null,
    expires_at integer not null
) strict;

create table token (
    id integer primary key,
    name text not null unique,
    hash blob not null unique,
    scope text not null check (scope in ('read', 'submit', 'admin')),
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer
) strict;
