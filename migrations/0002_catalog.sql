-- What can be run: targets as agents offered them, machine sizes, scenarios with every revision.

create table target (
    name text not null,
    version text not null,
    sha256 text not null,
    description text not null,
    first_seen_at integer not null,
    last_seen_at integer not null,
    primary key (name, version, sha256)
) strict;

create table machine_size (
    name text primary key,
    vcpus real not null check (vcpus > 0),
    memory_bytes integer not null check (memory_bytes > 0),
    created_at integer not null
) strict;

create table scenario_revision (
    id integer primary key,
    name text not null,
    sha256 text not null,
    script text not null,
    files text not null,
    defaults text not null,
    created_at integer not null,
    unique (name, sha256)
) strict;
