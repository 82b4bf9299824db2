-- What somebody should look at, and who is told of it elsewhere.

-- From when on an agent's absence and a queue that stands still are told. No row: as usual.
create table alert_rule (
    only integer primary key check (only = 1),
    agent_away_s integer not null check (agent_away_s > 0),
    queue_standstill_s integer not null check (queue_standstill_s > 0),
    set_at integer not null,
    set_by text not null
) strict;

-- Raised once and cleared once, whatever becomes of the server meanwhile. `since` is when what it is about began.
create table alert (
    id integer primary key,
    kind text not null check (kind in ('agent.away', 'queue.standstill')),
    subject text not null,
    sentence text not null,
    since integer not null,
    raised_at integer not null,
    cleared_at integer
) strict;
create unique index alert_raised on alert (kind, subject) where cleared_at is null;

-- Experiments whose end was told. One that gets further runs is taken out again.
create table experiment_told (
    experiment_id text primary key references experiment (id) on delete cascade,
    told_at integer not null
) strict, without rowid;
insert into experiment_told (experiment_id, told_at)
select id, created_at from experiment
where is_open = 0 and not exists (
    select 1 from run
    where experiment_id = experiment.id and phase not in ('finished', 'failed', 'cancelled', 'lost')
);

-- Where events are sent. The secret signs what is sent, so it is kept as it is. `events` is JSON.
create table webhook (
    id integer primary key autoincrement,
    url text not null,
    events text not null,
    secret text not null,
    created_by text not null,
    created_at integer not null
) strict;

-- What is to be sent and what was: `next_at` is null once it was delivered or given up.
create table webhook_delivery (
    id integer primary key,
    webhook_id integer not null references webhook (id) on delete cascade,
    event_id text not null,
    event text not null,
    body text not null,
    created_at integer not null,
    tries integer not null default 0,
    next_at integer,
    last_at integer,
    delivered_at integer,
    status integer,
    error text
) strict;
create index webhook_delivery_due on webhook_delivery (next_at) where next_at is not null;
create index webhook_delivery_last on webhook_delivery (webhook_id, id);
create index webhook_delivery_old on webhook_delivery (created_at) where next_at is null;
