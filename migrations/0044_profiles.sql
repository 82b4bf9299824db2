-- A profiler slows its target down, so a profiled run is no measurement.
alter table run add column profiled integer not null default 0 check (profiled in (0, 1));
-- Whether a run enters comparisons, trends and gates: one definition for all queries.
alter table run add column counts integer generated always as (
    phase = 'finished' and verdict in ('valid', 'suspect') and deleted_at is null and profiled = 0
) virtual;

create table profile (
    run_id text not null references run (id) on delete cascade,
    kind text not null check (kind in ('cpu', 'heap', 'allocs')),
    source text not null check (source in ('pprof', 'perf', 'command')),
    -- In the pprof format, compressed with gzip; null once retention has deleted it.
    body blob,
    -- How complete it is, as JSON.
    quality text not null,
    primary key (run_id, kind)
) strict;
