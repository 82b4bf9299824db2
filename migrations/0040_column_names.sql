-- Column names as in the API.
alter table run rename column in_turn to interleaved;
alter table run rename column wanted_agent to required_agent;
alter table run rename column least_new_connections to min_new_connections;
alter table run rename column most_new_connections to max_new_connections;
alter table agent rename column standing to availability;
alter table agent rename column standing_at to availability_at;
alter table agent rename column standing_by to availability_by;
alter table audit rename column who to actor;
alter table audit rename column what to action;
drop index audit_who;
drop index audit_what;
create index audit_actor on audit (actor, at);
create index audit_action on audit (action, at);
update audit set actor = 'anonymous' where actor = 'somebody';

create table series_rule_new (
    only integer primary key check (only = 1),
    after_days integer not null check (after_days > 0),
    reduction text not null check (reduction in ('downsample', 'delete')),
    set_at integer not null,
    set_by text not null
) strict;
insert into series_rule_new select only, after_days, replace(reduction, 'thin', 'downsample'), set_at, set_by from series_rule;
drop table series_rule;
alter table series_rule_new rename to series_rule;

create table run_series_reduced_new (
    run_id text primary key references run (id) on delete cascade,
    reduction text not null check (reduction in ('downsample', 'delete')),
    reduced_at integer not null
) strict, without rowid;
insert into run_series_reduced_new select run_id, replace(reduction, 'thin', 'downsample'), reduced_at from run_series_reduced;
drop table run_series_reduced;
alter table run_series_reduced_new rename to run_series_reduced;
update saved_view set query = replace(query, 'person=', 'created_by=') where query like '%person=%';
