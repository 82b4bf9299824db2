-- Experiments that go on after their submission: what further runs of them are made of, whether they decide by their own
-- figures that there are to be some, and whether somebody has paused them.

-- The machine sizes as runs get them, JSON, in the order of the plan, and the scenario's revision. Null where all runs of
-- an old experiment are gone.
alter table experiment add column sizes text;
alter table experiment add column scenario_sha256 text;
alter table experiment add column is_open integer not null default 0 check (is_open in (0, 1));
alter table experiment add column paused_at integer;
alter table experiment add column paused_by text;

update experiment set
    scenario_sha256 = (select scenario_sha256 from run where experiment_id = experiment.id order by seq limit 1),
    sizes = (
        select json_group_array(json_object('name', size_name, 'vcpus', vcpus, 'memory_bytes', memory_bytes))
        from (
            select size_name, vcpus, memory_bytes from run
            where experiment_id = experiment.id and size_name is not null
            group by size_name order by min(seq)
        )
    );

create index experiment_open on experiment (id) where is_open = 1;

-- How many more times the repetition that a run stands for is done, should this one fail, be lost or be invalid.
alter table run add column retries integer not null default 1;
update run set retries = 0 where retry_of is not null;
