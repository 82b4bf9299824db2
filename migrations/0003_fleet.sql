-- Agents: one key each. `hello` is the last introduction, verbatim.

create table agent (
    id integer primary key,
    name text not null unique,
    key_hash blob not null unique,
    created_at integer not null,
    revoked_at integer,
    last_seen_at integer,
    hello text
) strict;
