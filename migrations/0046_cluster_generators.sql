-- Number of load generators in the cluster of the run's agent; 0 if the load came from agents. It makes another cell.
alter table run add column cluster_generators integer not null default 0;
drop index run_cell;
alter table run drop column cell_key;
alter table run add column cell_key text generated always as (
    plan_key || ' ' || coalesce(engine, '') || iif(coalesce(target_kind, 'process') = 'process', '', ' ' || target_kind)
        || iif(cluster_generators = 0, '', ' ' || cluster_generators || ' generators')
) virtual;
create index run_cell on run (cell_key);
