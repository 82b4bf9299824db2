-- What people say of the changes in a cell's history, and what texts say apart from sums.

-- Bytes received per second where a summary rounds them and their sum, so that neither follows from the other.
alter table run add column received_per_s real;

-- A change is known by its cell, its metric and the first run after it. `run_at` keeps its place in the history when
-- that run is deleted; `rise` is 1 where figures are greater after it. `ratio` is after ÷ before when it was judged.
create table trend_judgement (
    target text not null,
    cell text not null,
    metric text not null,
    run_id text not null,
    run_at integer not null,
    rise integer not null check (rise in (0, 1)),
    ratio real not null,
    ruling text not null check (ruling in ('confirmed', 'dismissed')),
    note text,
    judged_by text not null,
    judged_at integer not null,
    primary key (cell, metric, run_id)
) strict, without rowid;
