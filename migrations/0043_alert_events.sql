-- The events of alerts have names that other tools use, too.
create table alert_renamed (
    id integer primary key,
    kind text not null check (kind in ('agent.disconnected', 'queue.stalled')),
    subject text not null,
    sentence text not null,
    since integer not null,
    raised_at integer not null,
    cleared_at integer
) strict;
insert into alert_renamed
select id, case kind when 'agent.away' then 'agent.disconnected' else 'queue.stalled' end,
    subject, sentence, since, raised_at, cleared_at
from alert;
drop table alert;
alter table alert_renamed rename to alert;
create unique index alert_raised on alert (kind, subject) where cleared_at is null;

update webhook set events = replace(replace(replace(replace(events,
    '"agent.away"', '"agent.disconnected"'), '"agent.back"', '"agent.connected"'),
    '"queue.standstill"', '"queue.stalled"'), '"queue.moving"', '"queue.resumed"');
