-- By which rules and limits each run was judged, and the limits that a scenario has of its own.

-- `limits` is JSON: a number by name, all of them.
create table run_judgement (
    run_id text primary key references run (id) on delete cascade,
    rules integer not null,
    limits text not null,
    judged_at integer not null
) strict, without rowid;

-- `limits` is JSON: a number by name, those that are not as usual. Old runs were judged by them up to `judged_revision`:
-- below `revision` there are some to judge anew.
create table scenario_limits (
    scenario text primary key,
    limits text not null,
    revision integer not null,
    judged_revision integer not null,
    changed_at integer not null,
    changed_by text not null
) strict, without rowid;
