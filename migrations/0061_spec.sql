-- What a run measures and no statement names is one JSON value, without what is usual: a new field of the spec needs no
-- column.
alter table run add column spec text not null default '{}';
update run set spec = '{"warm_up_auto":true}' where warm_up_auto <> 0;
alter table run drop column warm_up_auto;
