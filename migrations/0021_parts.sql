-- Runs that several agents do: one runs the target, the others make the load.

-- JSON: the names of the agents that make the load, in the order of their segments. Empty: the target's own agent.
alter table run add column generators text not null default '[]';

create index run_together on run (id) where generators <> '[]';

-- What each agent has done of such a run. Place 0 is the target's, 1 and on are the generators'.
create table run_part (
    run_id text not null references run (id) on delete cascade,
    place integer not null check (place >= 0),
    agent text not null,
    -- Until then it counts as alive; null once it has delivered, or its run has ended.
    lease_expires_at integer,
    -- Its clock minus the server's, and how far that may be wrong, milliseconds.
    clock_offset_ms real,
    clock_error_ms real,
    -- Its outcome without summary and series, compressed JSON; null until it came.
    outcome blob,
    summary blob,
    series blob,
    primary key (run_id, place)
) strict, without rowid;

create index run_part_leased on run_part (agent) where lease_expires_at is not null;
