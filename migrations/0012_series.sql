-- What happened during a run, second by second, as its agent packed it.

create table run_series (
    run_id text primary key references run (id) on delete cascade,
    body blob not null
) strict;
