-- At how many repetitions an experiment was looked at before repetitions were added. Empty for earlier additions, of which
-- only the number is known (looks).
alter table experiment add column looks_at text not null default '[]' check (json_valid(looks_at));
