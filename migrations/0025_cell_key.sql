-- What runs share that are repetitions of each other, the version of their target aside: one definition for all queries.
-- How long a constant load lasts makes no other cell. The agent is a column of its own: a queued run has none yet.
alter table run add column cell_key text generated always as (
    json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
        json_remove(load, '$.duration_s'), vus)
) virtual;

create index run_cell on run (cell_key);
