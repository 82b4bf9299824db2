-- The figures of a run become one JSON value, which the program writes and reads as a whole. Columns are generated for those
-- by which lists are sorted with an index. SQLite writes a number as JSON with 15 digits; 17 keep every bit of it.
drop index run_by_rps;
drop index run_by_avg;
drop index run_by_p50;
drop index run_by_p90;
drop index run_by_p95;
drop index run_by_p99;
drop index run_by_max;
drop index run_by_error_rate;

alter table run add column figures text;
update run set figures = (
    with figure(name, value) as (values
        ('requests', requests), ('failed', failed), ('error_rate', failed * 1.0 / requests), ('rps', rps),
        ('avg_ms', avg_ms), ('min_ms', min_ms), ('p50_ms', p50_ms), ('p90_ms', p90_ms), ('p95_ms', p95_ms),
        ('p99_ms', p99_ms), ('p999_ms', p999_ms), ('max_ms', max_ms), ('measured_s', measured_ms / 1000.0),
        ('cpu_ms_per_request', target_cpu_us / 1000.0 / requests), ('target_memory_bytes', target_memory_bytes),
        ('throttled_share', throttled_share), ('startup_ms', startup_ms), ('idle_memory_bytes', idle_memory_bytes),
        ('data_received_bytes', data_received_bytes), ('data_sent_bytes', data_sent_bytes),
        ('received_per_s', coalesce(received_per_s,
            data_received_bytes / (iif(measured_ms > 0, measured_ms, null) / 1000.0))),
        ('voluntary_switches_per_request', (counters ->> 'voluntary_switches') * 1.0 / requests),
        ('involuntary_switches_per_request', (counters ->> 'involuntary_switches') * 1.0 / requests),
        ('page_faults_per_request', (counters ->> 'page_faults') * 1.0 / requests),
        ('instructions_per_request', (counters ->> 'instructions') * 1.0 / requests),
        ('cycles_per_request', (counters ->> 'cycles') * 1.0 / requests),
        ('cache_misses_per_request', (counters ->> 'cache_misses') * 1.0 / requests),
        ('branch_misses_per_request', (counters ->> 'branch_misses') * 1.0 / requests),
        ('iterations', iterations), ('dropped_iterations', dropped_iterations), ('checks_passed', checks_passed),
        ('checks_failed', checks_failed), ('thresholds', thresholds), ('thresholds_failed', thresholds_failed),
        ('warmed_up_s', warmed_up_ms / 1000.0),
        ('warm_up_steady', iif(warm_up_steady is null, null, iif(warm_up_steady, 'true', 'false')))
    ),
    work(name, value) as (values
        ('requests_per_iteration', nullif(requests, 0) * 1.0 / iterations),
        ('bytes_per_request', data_received_bytes / requests), ('sent_bytes_per_request', data_sent_bytes / requests),
        ('new_connections', iif(min_new_connections = max_new_connections, min_new_connections, null)),
        ('min_new_connections', min_new_connections), ('max_new_connections', max_new_connections),
        ('new_connection_share',
            iif(min_new_connections = max_new_connections, min_new_connections, null) * 1.0 / requests),
        ('statuses', statuses), ('protocols', protocols)
    ),
    known(name, value) as (
        select name, value from figure
        union all select 'work', (
            select nullif(json_group_object(name, json(iif(typeof(value) = 'real', printf('%!.17g', value), value))), '{}')
            from work where value is not null and (typeof(value) <> 'real' or abs(value) < 9e999))
    )
    select nullif(json_group_object(name, json(iif(typeof(value) = 'real', printf('%!.17g', value), value))), '{}')
    from known where value is not null and (typeof(value) <> 'real' or abs(value) < 9e999)
);

alter table run drop column requests;
alter table run drop column failed;
alter table run drop column rps;
alter table run drop column measured_ms;
alter table run drop column avg_ms;
alter table run drop column min_ms;
alter table run drop column p50_ms;
alter table run drop column p90_ms;
alter table run drop column p95_ms;
alter table run drop column p99_ms;
alter table run drop column p999_ms;
alter table run drop column max_ms;
alter table run drop column data_received_bytes;
alter table run drop column data_sent_bytes;
alter table run drop column iterations;
alter table run drop column dropped_iterations;
alter table run drop column checks_passed;
alter table run drop column checks_failed;
alter table run drop column thresholds;
alter table run drop column thresholds_failed;
alter table run drop column received_per_s;
alter table run drop column target_cpu_us;
alter table run drop column target_memory_bytes;
alter table run drop column min_new_connections;
alter table run drop column max_new_connections;
alter table run drop column statuses;
alter table run drop column protocols;
alter table run drop column warmed_up_ms;
alter table run drop column warm_up_steady;
alter table run drop column throttled_share;
alter table run drop column startup_ms;
alter table run drop column idle_memory_bytes;
alter table run drop column counters;

alter table run add column rps real generated always as (figures ->> 'rps') virtual;
alter table run add column avg_ms real generated always as (figures ->> 'avg_ms') virtual;
alter table run add column p50_ms real generated always as (figures ->> 'p50_ms') virtual;
alter table run add column p90_ms real generated always as (figures ->> 'p90_ms') virtual;
alter table run add column p95_ms real generated always as (figures ->> 'p95_ms') virtual;
alter table run add column p99_ms real generated always as (figures ->> 'p99_ms') virtual;
alter table run add column p999_ms real generated always as (figures ->> 'p999_ms') virtual;
alter table run add column max_ms real generated always as (figures ->> 'max_ms') virtual;
alter table run add column error_rate real generated always as (figures ->> 'error_rate') virtual;
alter table run add column cpu_ms_per_request real generated always as (figures ->> 'cpu_ms_per_request') virtual;
alter table run add column target_memory_bytes real generated always as (figures ->> 'target_memory_bytes') virtual;
alter table run add column received_per_s real generated always as (figures ->> 'received_per_s') virtual;
create index run_by_rps on run (rps) where rps is not null;
create index run_by_avg on run (avg_ms) where avg_ms is not null;
create index run_by_p50 on run (p50_ms) where p50_ms is not null;
create index run_by_p90 on run (p90_ms) where p90_ms is not null;
create index run_by_p95 on run (p95_ms) where p95_ms is not null;
create index run_by_p99 on run (p99_ms) where p99_ms is not null;
create index run_by_p999 on run (p999_ms) where p999_ms is not null;
create index run_by_max on run (max_ms) where max_ms is not null;
create index run_by_error_rate on run (error_rate) where error_rate is not null;
create index run_by_cpu on run (cpu_ms_per_request) where cpu_ms_per_request is not null;
create index run_by_memory on run (target_memory_bytes) where target_memory_bytes is not null;
create index run_by_received on run (received_per_s) where received_per_s is not null;
