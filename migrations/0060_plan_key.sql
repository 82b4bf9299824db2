-- What identifies the plan of runs that are repetitions of each other is computed by the program from their spec and stored
-- with each run: a new field of the spec needs no new definition here. The keys of runs with usual values do not change.
alter table run add column stored_key text not null default '';
update run set stored_key = iif(replicas = 1 and cluster_generators = 0,
    plan_key,
    json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
        json_remove(load, '$.duration_s'), vus,
        json_patch('{}', json_object('replicas', nullif(replicas, 1), 'cluster_generators', nullif(cluster_generators, 0)))));
drop index run_cell;
alter table run drop column cell_key;
alter table run drop column plan_key;
alter table run rename column stored_key to plan_key;
-- With what was observed: the load generator, and the kind of the target.
alter table run add column cell_key text generated always as (
    plan_key || ' ' || coalesce(engine, '') || iif(coalesce(target_kind, 'process') = 'process', '', ' ' || target_kind)
) virtual;
create index run_cell on run (cell_key);
