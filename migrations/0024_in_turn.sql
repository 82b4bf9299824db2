-- What a comparison has to know of how runs were measured: whether imported ones were measured in turn, and how often an
-- experiment was looked at before repetitions were added.

-- Whether the import says that its runs were measured in turn with those of other targets. Null for runs of agents, which
-- always measure an experiment in turn.
alter table run add column in_turn integer check (in_turn in (0, 1));

-- 1, and 1 more each time somebody added repetitions.
alter table experiment add column looks integer not null default 1 check (looks >= 1);
update experiment set looks = max(1, (
    select count(distinct queued_at) from run where experiment_id = experiment.id and retry_of is null))
where json_extract(plan, '$.until') is null and json_extract(plan, '$.knee') is null;
