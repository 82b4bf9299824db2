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
