-- Number of instances of a target that share the load; each has the cores and the memory of its machine size. Several make
-- another plan and another cell; the keys of one do not change.
alter table machine_size add column replicas integer not null default 1 check (replicas > 0);
alter table run add column replicas integer not null default 1 check (replicas > 0);
drop index run_cell;
alter table run drop column cell_key;
alter table run drop column plan_key;
alter table run add column plan_key text generated always as (
    iif(replicas = 1,
        json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
            json_remove(load, '$.duration_s'), vus),
        json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
            json_remove(load, '$.duration_s'), vus, replicas))
) virtual;
alter table run add column cell_key text generated always as (
    plan_key || ' ' || coalesce(engine, '') || iif(coalesce(target_kind, 'process') = 'process', '', ' ' || target_kind)
        || iif(cluster_generators = 0, '', ' ' || cluster_generators || ' generators')
) virtual;
create index run_cell on run (cell_key);
