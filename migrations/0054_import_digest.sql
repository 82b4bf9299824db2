-- SHA-256 of an imported file: the same file is no second repetition. Unknown for runs of agents and of older servers.
alter table run_summary add column sha256 text;
create index run_summary_sha256 on run_summary (sha256) where sha256 is not null;
