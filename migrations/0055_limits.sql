-- Limits of lists that users fill. The database enforces them, so that requests at the same time can't exceed one; the
-- message is the answer to the request. Lists that are longer already stay, but do not grow.

create trigger run_label_limit before insert on run_label
when (select count(*) from run_label where run_seq = new.run_seq) >= 30
    and not exists (select 1 from run_label where label = new.label and run_seq = new.run_seq)
begin
    select raise(abort, 'label: a run has at most 30 labels; remove one first');
end;

create trigger experiment_label_limit before update of labels on experiment
when json_array_length(new.labels) > 30 and json_array_length(new.labels) > json_array_length(old.labels)
begin
    select raise(abort, 'label: an experiment has at most 30 labels; remove one first');
end;

create trigger baseline_limit before insert on baseline
when (select count(*) from baseline) >= 200 and not exists (select 1 from baseline where name = new.name)
begin
    select raise(abort, 'the limit of 200 baselines is reached; remove one first');
end;

create trigger accepted_difference_limit before insert on accepted_difference
when (select count(*) from accepted_difference) >= 1000
begin
    select raise(abort, 'the limit of 1000 accepted differences is reached; revoke some first');
end;

create trigger webhook_limit before insert on webhook
when (select count(*) from webhook) >= 50
begin
    select raise(abort, 'the limit of 50 webhooks is reached; remove one first');
end;

-- The runs that a user has queued are counted for each submission.
create index run_queued_by on run (created_by) where phase = 'queued';
