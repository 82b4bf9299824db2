-- How long series are kept. No row: for ever. Figures of runs stay in any case.

create table series_rule (
    only integer primary key check (only = 1),
    after_days integer not null check (after_days > 0),
    reduction text not null check (reduction in ('thin', 'delete')),
    set_at integer not null,
    set_by text not null
) strict;

-- Runs whose series is not any more what they were judged by: so they keep their verdicts.
create table run_series_reduced (
    run_id text primary key references run (id) on delete cascade,
    reduction text not null check (reduction in ('thin', 'delete')),
    reduced_at integer not null
) strict, without rowid;
