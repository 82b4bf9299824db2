-- Until when a user has dismissed the notices about their account, unix ms. The actions of earlier versions raise none.
alter table user add column notices_from integer not null default 0;
update user set notices_from = unixepoch() * 1000;
