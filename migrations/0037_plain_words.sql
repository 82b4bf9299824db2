-- Actions of the audit log in the words of the documentation.
update audit set what = 'invitation created' where what = 'invitation made';
update audit set what = 'user removed' where what = 'person removed';
update audit set what = 'token created' where what = 'token made';
update audit set what = 'agent key created' where what = 'agent key made';
update audit set what = 'agent key rotation requested' where what = 'agent key change asked for';
update audit set what = 'agent key rotated' where what = 'agent key changed';
update audit set what = 'agent removed' where what = 'agent forgotten';
update audit set what = 'run moved to front' where what = 'run put first';
update audit set what = 'runs rejudged' where what = 'runs judged anew';
update audit set what = 'backup created' where what = 'backup made';
update audit set what = 'retention set' where what = 'rule for series set';
update audit set what = 'alert rule set' where what = 'rule for alerts set';
update audit set detail = json_remove(json_set(detail, '$.message', detail ->> '$.told'), '$.told')
where what = 'login refused' and detail ->> '$.told' is not null;

alter table experiment_told rename to experiment_announced;
alter table experiment_announced rename column told_at to announced_at;
