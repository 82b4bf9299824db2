-- What in its files may be the target's address, as JSON; null if its runs get the address.
alter table scenario_revision add column found text;
update scenario_revision set found = addresses where not has_address;
alter table scenario_revision drop column addresses;
alter table scenario_revision drop column has_address;
alter table scenario_revision rename column found to addresses;

create index scenario_file_content on scenario_file (content);
