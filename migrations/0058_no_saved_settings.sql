-- The address of a page has the settings that these stored under a name.
drop table saved_view;
drop table preset;
