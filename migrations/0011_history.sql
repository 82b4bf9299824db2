-- The history: what it is narrowed to, ordered by and found by; labels, notes, deletions that can be undone, views.

alter table run add column labels text not null default '[]';
alter table run add column note text;
alter table run add column deleted_at integer;
alter table run add column deleted_by text;

alter table experiment add column labels text not null default '[]';
alter table experiment add column note text;

-- `run.labels` is the same as JSON, kept by triggers, so that a list reads one table.
create table run_label (
    label text not null,
    run_seq integer not null references run (seq) on delete cascade,
    primary key (label, run_seq)
) strict, without rowid;

create index run_label_run on run_label (run_seq);

create trigger run_label_added after insert on run_label begin
    update run set labels = (select json_group_array(label) from (select label from run_label where run_seq = new.run_seq order by label))
    where seq = new.run_seq;
end;

create trigger run_label_removed after delete on run_label begin
    update run set labels = (select json_group_array(label) from (select label from run_label where run_seq = old.run_seq order by label))
    where seq = old.run_seq;
end;

-- Every index costs each import: only what people look by has one. `seq` is the table's rowid, so each of these ends with
-- it and is in the order of the history. Targets, agents, scenarios, sizes and ends have theirs already.
create index run_by_queued_at on run (queued_at);
create index run_by_version on run (version);
create index run_by_person on run (created_by);
-- Most runs are finished and valid: of these the history itself is read.
create index run_broken on run (phase) where phase = 'failed' or phase = 'lost' or phase = 'cancelled';
create index run_doubtful on run (verdict) where verdict = 'suspect' or verdict = 'invalid';

-- The figures that are mostly sorted by; the others are sorted as they are asked for.
create index run_by_rps on run (rps) where rps is not null;
create index run_by_avg on run (avg_ms) where avg_ms is not null;
create index run_by_p50 on run (p50_ms) where p50_ms is not null;
create index run_by_p90 on run (p90_ms) where p90_ms is not null;
create index run_by_p95 on run (p95_ms) where p95_ms is not null;
create index run_by_p99 on run (p99_ms) where p99_ms is not null;
create index run_by_max on run (max_ms) where max_ms is not null;
create index run_by_error_rate on run (failed * 1.0 / requests) where (failed * 1.0 / requests) is not null;

-- What is in an agent's hands, and what a lost run was repeated by.
create index run_leased on run (lease_expires_at) where lease_expires_at is not null;
create index run_retry on run (retry_of) where retry_of is not null;

create index run_deleted on run (deleted_at) where deleted_at is not null;
create index run_noted on run (seq) where note is not null;

-- The history as somebody looked at it, under a name, for everybody. `query` is that of its address.
create table saved_view (
    name text primary key,
    query text not null,
    created_by text not null,
    created_at integer not null
) strict, without rowid;
