-- Counts the changes of the values that the filters of the history offer, so that a list of them is right for as long as this
-- stays as it was when the list was made.
create table run_values (changes integer not null) strict;
insert into run_values values (0);

create trigger run_values_run_added after insert on run begin
    update run_values set changes = changes + 1;
end;
create trigger run_values_run_changed
after update of target, version, size_name, scenario, agent, created_by, engine_name, engine_version on run begin
    update run_values set changes = changes + 1;
end;
create trigger run_values_run_removed after delete on run begin
    update run_values set changes = changes + 1;
end;
create trigger run_values_label_added after insert on run_label begin
    update run_values set changes = changes + 1;
end;
create trigger run_values_label_changed after update on run_label begin
    update run_values set changes = changes + 1;
end;
create trigger run_values_label_removed after delete on run_label begin
    update run_values set changes = changes + 1;
end;
