-- An agent is its id, and its name is a property: a new name is written once. A removed agent keeps its row, and with it
-- the name of its runs; an agent that gets this name later is the same agent again.
alter table agent add column removed_at integer;
insert into agent (name, key_hash, created_at, revoked_at, removed_at)
select name, randomblob(32), now, now, now
from (select unixepoch() * 1000 as now), (
    select agent as name from run where agent is not null
    union select required_agent from run where required_agent is not null
    union select value from run, json_each(run.generators) where run.generators <> '[]'
    union select agent from run_part
    union select agent from lease
    union select plan ->> '$.agent' from experiment where plan ->> '$.agent' is not null
    union select value from experiment, json_each(experiment.plan, '$.generators')
)
where name not in (select name from agent);

drop trigger agent_renamed;
drop trigger lease_ends_with_run;
drop trigger lease_ends_with_part;
drop trigger run_values_run_changed;
-- No run changes in what is compared; for 100,000 runs this trigger would double the time.
drop trigger comparison_inputs_run_changed;
drop index overview_run_agent;
drop index run_begun;

alter table run add column agent_id integer references agent (id);
alter table run add column required_agent_id integer references agent (id);
-- Generators are ids, too, in the order of their segments.
update run set
    agent_id = (select id from agent where name = run.agent),
    required_agent_id = (select id from agent where name = run.required_agent),
    generators = iif(generators = '[]', '[]', (
        select json_group_array((select id from agent where name = named.value)) from json_each(run.generators) as named))
where agent is not null or required_agent is not null or generators <> '[]';
alter table run drop column agent;
alter table run drop column required_agent;
create index overview_run_agent on run (agent_id, seq);
create index run_begun on run (experiment_id, block, seq) where agent_id is not null;
create trigger run_values_run_changed
after update of target, version, size_name, scenario, agent_id, created_by, engine_name, engine_version on run begin
    update run_values set changes = changes + 1;
end;
create trigger comparison_inputs_run_changed after update on run
when new.phase in ('finished', 'failed', 'cancelled', 'lost') or old.phase in ('finished', 'failed', 'cancelled', 'lost')
begin
    update comparison_inputs set changes = changes + 1;
end;
-- Filters and comparisons show names.
create trigger agent_renamed after update of name on agent when old.name <> new.name begin
    update run_values set changes = changes + 1;
    update comparison_inputs set changes = changes + 1;
end;

alter table run_part add column agent_id integer references agent (id);
update run_part set agent_id = (select id from agent where name = run_part.agent);
alter table run_part drop column agent;

create table lease_by_id (
    run_id text not null references run (id) on delete cascade,
    agent_id integer not null references agent (id),
    expires_at integer not null,
    primary key (run_id, agent_id)
) strict, without rowid;
insert into lease_by_id select run_id, (select id from agent where name = lease.agent), expires_at from lease;
drop table lease;
alter table lease_by_id rename to lease;
create index lease_by_agent on lease (agent_id);
create index lease_by_end on lease (expires_at);
create trigger lease_ends_with_run after update of phase on run
when new.phase in ('queued', 'finished', 'failed', 'cancelled', 'lost')
begin
    delete from lease where run_id = new.id;
end;
create trigger lease_ends_with_part after update of outcome on run_part when new.outcome is not null
begin
    delete from lease where run_id = new.run_id and agent_id = new.agent_id;
end;

-- The agents that a plan names.
alter table experiment add column agent_id integer references agent (id);
alter table experiment add column generators text not null default '[]';
update experiment set
    agent_id = (select id from agent where name = plan ->> '$.agent'),
    generators = (
        select json_group_array((select id from agent where name = named.value))
        from json_each(experiment.plan, '$.generators') as named),
    plan = json_remove(plan, '$.agent', '$.generators');
