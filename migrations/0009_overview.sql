-- What pages look up from the side of a target, an agent, a size or a scenario, and what ended since some time.

create index overview_run_target on run (target, seq);
create index overview_run_agent on run (agent, seq);
create index overview_run_scenario on run (scenario, seq);
create index overview_run_size on run (size_name);
create index overview_run_finished on run (finished_at);
