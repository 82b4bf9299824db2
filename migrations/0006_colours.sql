-- One colour a target, by its name and for good: slots count from 0 in the order in which names were first seen. They
-- outlive what they were given for. Triggers hand them out, so that no way in can forget it.

create table target_colour (
    name text primary key,
    slot integer not null unique
) strict, without rowid;

insert into target_colour (name, slot)
select name, row_number() over (order by min(at), min(place), name) - 1
from (
    select name, first_seen_at as at, rowid as place from target
    union all
    select target, queued_at, seq from run
)
group by name;

create trigger target_colour_of_offer after insert on target
when not exists (select 1 from target_colour where name = new.name)
begin
    insert into target_colour (name, slot) select new.name, coalesce(max(slot) + 1, 0) from target_colour;
end;

create trigger target_colour_of_run after insert on run
when not exists (select 1 from target_colour where name = new.target)
begin
    insert into target_colour (name, slot) select new.target, coalesce(max(slot) + 1, 0) from target_colour;
end;
