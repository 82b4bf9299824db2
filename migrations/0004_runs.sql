-- One row a run. Headline figures are columns, so that history is one query; everything long is a compressed blob in a
-- table of its own. Latencies are milliseconds; a figure that is not known is null.

create table run (
    seq integer primary key autoincrement,
    id text not null unique,
    experiment_id text,
    retry_of text,
    origin text not null check (origin in ('agent', 'import')),

    target text not null,
    version text,
    target_sha256 text,
    size_name text,
    vcpus real,
    memory_bytes integer,
    scenario text,
    scenario_sha256 text,
    parameters text not null default '{}',
    vus integer,
    duration_ms integer,
    warm_up_ms integer,
    repetition integer not null,
    created_by text not null,

    wanted_agent text,
    agent text,
    phase text not null check (phase in ('queued', 'leased', 'preparing', 'warming_up', 'measuring', 'collecting',
        'finished', 'failed', 'cancelled', 'lost')),
    lease_expires_at integer,
    queued_at integer not null,
    phase_at integer not null,
    started_at integer,
    finished_at integer,
    error text,

    verdict text check (verdict in ('valid', 'suspect', 'invalid')),
    reasons text not null default '[]',

    requests integer,
    failed integer,
    rps real,
    measured_ms real,
    avg_ms real,
    min_ms real,
    p50_ms real,
    p90_ms real,
    p95_ms real,
    p99_ms real,
    p999_ms real,
    max_ms real,
    data_received_bytes real,
    data_sent_bytes real,
    iterations integer,
    dropped_iterations integer,
    checks_passed integer,
    checks_failed integer,
    thresholds integer,
    thresholds_failed integer,

    enforced_cpu text,
    enforced_memory text,
    k6_version text
) strict;

create index run_experiment on run (experiment_id, seq);
create index run_unfinished on run (phase, seq) where phase not in ('finished', 'failed', 'cancelled', 'lost');

-- When each phase began, by the server's clock.
create table run_phase (
    run_id text not null references run (id) on delete cascade,
    phase text not null,
    at integer not null,
    primary key (run_id, phase)
) strict, without rowid;

-- k6's end-of-test JSON, verbatim, as zlib.
create table run_summary (
    run_id text primary key references run (id) on delete cascade,
    body blob not null
) strict;

-- What an agent saw besides the summary: logs, sandbox, machine; JSON as zlib.
create table run_evidence (
    run_id text primary key references run (id) on delete cascade,
    body blob not null
) strict;
