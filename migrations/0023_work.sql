-- What the requests of a run were, so that only equal work is compared. Null where it is not known.

-- Requests that opened a connection of their own, at least and at most: the same where an agent counted them. A summary
-- has percentiles of the time that connecting took only, which is 0 for a connection that is used again.
alter table run add column least_new_connections integer;
alter table run add column most_new_connections integer;
-- JSON objects: how many requests had each status, 0 for no response, and each protocol.
alter table run add column statuses text;
alter table run add column protocols text;

-- Whether the warm-up went on until the target was steady, how long it then took, and whether it was in the end.
alter table run add column warm_up_auto integer not null default 0;
alter table run add column warmed_up_ms integer;
alter table run add column warm_up_steady integer;

-- Differences in the work of two targets that a user has accepted; `one` comes before `other` by the alphabet, and they
-- are the same where versions are compared. `facts` is a JSON list of what may differ.
create table accepted_difference (
    id integer primary key autoincrement,
    one text not null,
    other text not null,
    scenario text,
    facts text not null,
    note text not null,
    accepted_by text not null,
    accepted_at integer not null
) strict;

create index accepted_difference_pair on accepted_difference (one, other);
