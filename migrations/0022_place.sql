-- Where a run may be done, besides by one agent that is named.

-- Only agents with this label may do it.
alter table run add column agent_label text;
-- The runs of an experiment that stay on one machine: those of one block. Of an experiment that is spread over several,
-- the number of the repetition; else 0.
alter table run add column block integer not null default 0;

-- Who has begun a block.
create index run_begun on run (experiment_id, block, seq) where agent is not null;
