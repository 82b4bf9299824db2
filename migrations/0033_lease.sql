-- Who works on which run: each participant, until its part is delivered or the run has ended. An agent counts as alive until
-- its lease expires.
create table lease (
    run_id text not null references run (id) on delete cascade,
    agent text not null,
    expires_at integer not null,
    primary key (run_id, agent)
) strict, without rowid;

create index lease_by_agent on lease (agent);
create index lease_by_end on lease (expires_at);

insert into lease select id, agent, lease_expires_at from run where lease_expires_at is not null and agent is not null;
insert or ignore into lease select run_id, agent, lease_expires_at from run_part where lease_expires_at is not null;

drop index run_leased;
drop index run_part_leased;
alter table run drop column lease_expires_at;
alter table run_part drop column lease_expires_at;

-- Nobody works on a run that waits or has ended, nor on a part that is delivered.
create trigger lease_ends_with_run after update of phase on run
when new.phase in ('queued', 'finished', 'failed', 'cancelled', 'lost')
begin
    delete from lease where run_id = new.id;
end;

create trigger lease_ends_with_part after update of outcome on run_part when new.outcome is not null
begin
    delete from lease where run_id = new.run_id and agent = new.agent;
end;
