-- Counts the changes of what comparisons are made of: runs that have ended, their series and evidence, and what people said
-- of them. A comparison of ended runs is right for as long as this stays as it was when the comparison was made.
create table comparison_inputs (changes integer not null) strict;
insert into comparison_inputs values (0);

create trigger comparison_inputs_run_added after insert on run begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_run_changed after update on run
when new.phase in ('finished', 'failed', 'cancelled', 'lost') or old.phase in ('finished', 'failed', 'cancelled', 'lost')
begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_run_removed after delete on run begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_series_added after insert on run_series begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_series_changed after update on run_series begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_series_removed after delete on run_series begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_evidence_added after insert on run_evidence begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_evidence_changed after update on run_evidence begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_evidence_removed after delete on run_evidence begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_colour_added after insert on target_colour begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_colour_changed after update on target_colour begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_colour_removed after delete on target_colour begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_experiment_changed after update on experiment begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_experiment_removed after delete on experiment begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_baseline_added after insert on baseline_run begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_baseline_changed after update on baseline_run begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_baseline_removed after delete on baseline_run begin
    update comparison_inputs set changes = changes + 1;
end;

create trigger comparison_inputs_difference_added after insert on accepted_difference begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_difference_changed after update on accepted_difference begin
    update comparison_inputs set changes = changes + 1;
end;
create trigger comparison_inputs_difference_removed after delete on accepted_difference begin
    update comparison_inputs set changes = changes + 1;
end;
