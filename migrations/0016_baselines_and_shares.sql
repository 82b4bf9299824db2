-- Baselines: lists of runs under a name. Shares: links to a comparison that need no login.

create table baseline (
    name text primary key,
    set_by text not null,
    set_at integer not null
) strict, without rowid;

-- A run that is deleted leaves its baselines, which tell that it was there: so nothing refers to it.
create table baseline_run (
    baseline text not null references baseline (name) on delete cascade,
    place integer not null,
    run_id text not null,
    primary key (baseline, place)
) strict, without rowid;

-- `hash` is that of the link's secret. `runs` is a JSON list of ids: a link shows these runs and never others; `query` is
-- the rest of what the address of the comparison said.
create table share (
    id integer primary key autoincrement,
    hash blob not null unique,
    title text not null,
    query text not null,
    runs text not null,
    created_by text not null,
    created_at integer not null,
    expires_at integer,
    revoked_at integer
) strict;
