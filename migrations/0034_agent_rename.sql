-- Runs, parts, leases and plans name their agents, also agents that are gone since. Renaming an agent renames it in all of
-- them, so that `update agent set name` is all that anybody needs to know.
create trigger agent_renamed after update of name on agent when old.name <> new.name
begin
    update run set agent = new.name where agent = old.name;
    update run set wanted_agent = new.name
        where wanted_agent = old.name and phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost');
    update run set generators =
            (select json_group_array(name) from (
                select iif(value = old.name, new.name, value) as name from json_each(run.generators) order by key))
        where generators <> '[]' and exists (select 1 from json_each(run.generators) where value = old.name);
    update run_part set agent = new.name where agent = old.name;
    update lease set agent = new.name where agent = old.name;
    update experiment set plan = json_set(plan, '$.agent', new.name) where plan ->> '$.agent' = old.name;
    update experiment set plan = json_set(plan, '$.generators', json(
            (select json_group_array(name) from (
                select iif(value = old.name, new.name, value) as name from json_each(plan, '$.generators') order by key))))
        where exists (select 1 from json_each(plan, '$.generators') where value = old.name);
end;
