-- Which agent offered a target last: what an agent fills the catalog with is limited.
alter table target add column agent_id integer;
create index target_agent on target (agent_id, last_seen_at) where agent_id is not null;

-- Whether a run used an executable.
create index run_executable on run (target, target_sha256) where target_sha256 is not null;
