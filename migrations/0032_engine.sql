-- The load generator of a run, which makes another cell as a target or a load does. Until now agents had k6 only, and of
-- imported reports only those of k6 count iterations.
drop index run_cell;
alter table run drop column cell_key;
alter table run rename column k6_version to engine_version;
alter table run add column engine_name text;
update run set engine_name = 'k6' where engine_version is not null or iterations is not null;
alter table run add column engine text generated always as (engine_name || coalesce(' ' || engine_version, '')) virtual;
create index run_by_engine on run (engine);

-- What was asked for by runs that are repetitions of each other. How long a constant load lasts makes no other cell.
alter table run add column plan_key text generated always as (
    json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
        json_remove(load, '$.duration_s'), vus)
) virtual;
-- What measured runs share that are repetitions of each other, the version of their target aside: one definition for all
-- queries. A queued run has no engine yet. The agent is a column of its own.
alter table run add column cell_key text generated always as (plan_key || ' ' || coalesce(engine, '')) virtual;
create index run_cell on run (cell_key);

-- An agent has a list of load generators.
update agent
set hello = json_set(
    json_remove(hello, '$.k6_version', '$.k6_path', '$.k6_supported', '$.k6_fault'),
    '$.engines',
    json_array(json_object(
        'name', 'k6', 'version', coalesce(hello ->> '$.k6_version', ''), 'path', hello ->> '$.k6_path',
        'supported', hello ->> '$.k6_supported', 'fault', hello ->> '$.k6_fault')))
where hello is not null;

alter table scenario_revision rename column checked_k6 to checked_version;
