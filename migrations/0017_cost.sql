-- What the target used while its requests were measured: CPU time, and the most memory that a sample found in use.

alter table run add column target_cpu_us integer;
alter table run add column target_memory_bytes integer;
