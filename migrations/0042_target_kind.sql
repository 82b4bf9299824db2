-- How targets are provided, and what identifies them: the SHA-256 of an executable, or a URL. Until now all were programs
-- that agents started; of imports it is not known.
alter table target rename column sha256 to identity;
alter table target add column kind text not null default 'process';

alter table run rename column target_sha256 to target_identity;
alter table run add column target_kind text;
update run set target_kind = 'process' where target_identity is not null or origin = 'agent' and phase = 'finished';
create index run_by_kind on run (target_kind);

-- Runs of different kinds are not repetitions of each other. A queued run has no kind yet. The key of a program stays
-- what it was.
drop index run_cell;
alter table run drop column cell_key;
alter table run add column cell_key text generated always as (
    plan_key || ' ' || coalesce(engine, '') || iif(coalesce(target_kind, 'process') = 'process', '', ' ' || target_kind)
) virtual;
create index run_cell on run (cell_key);

update agent
set hello = json_set(hello, '$.targets', json((
        select json_group_array(json_set(
            json_remove(value, '$.sha256'), '$.identity',
            json_object('kind', 'process', 'sha256', value ->> '$.sha256')))
        from json_each(hello, '$.targets'))))
where hello ->> '$.targets[0].sha256' is not null;
