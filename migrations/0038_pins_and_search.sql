-- The trends that a user has pinned to the dashboard. `setting` describes the cell, also when it has no runs any more.
create table trend_pin (
    user_id text not null references user (id) on delete cascade,
    target text not null,
    cell text not null,
    setting text not null,
    pinned_at integer not null,
    primary key (user_id, target, cell)
) strict, without rowid;

-- For the search: names of experiments, and runs by the last part of their id, which commands print.
create index experiment_by_name on experiment (name collate nocase, id);
create index run_by_end_of_id on run (substr(id, -12));
