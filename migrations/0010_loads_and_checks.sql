-- A run's load as JSON, whole: virtual users or a rate, constant or in stages, or the script's own. `vus` stays for what
-- is constant and for imports, `duration_ms` is how long the load lasts. Null for imports.

alter table run add column load text;

update run set load = case
    when vus is null or duration_ms is null then json_object('kind', 'script')
    else json_object('kind', 'vus', 'vus', vus, 'duration_s', duration_ms / 1000.0)
end
where origin = 'agent';

-- Plans said the same by two fields of their own.
update experiment set plan = json_remove(json_set(plan, '$.load', json(case
    when plan ->> '$.vus' is null or plan ->> '$.duration_s' is null then json_object('kind', 'script')
    else json_object('kind', 'vus', 'vus', plan ->> '$.vus', 'duration_s', plan ->> '$.duration_s')
end)), '$.vus', '$.duration_s');

-- What k6 said to a script when an agent let it look: all null if nobody has, no fault if it can run it.
alter table scenario_revision add column checked_by text;
alter table scenario_revision add column checked_k6 text;
alter table scenario_revision add column checked_at integer;
alter table scenario_revision add column check_fault text;

-- The audit log is read by the time of a deed, newest first: with these no filter has to sort.
drop index audit_who;
drop index audit_what;
create index audit_who on audit (who, at);
create index audit_what on audit (what, at);
