-- Memory that a target holds, without file cache. What runs have recorded so far, the working set, stays what it is.
alter table run add column held_memory_bytes real generated always as (figures ->> 'held_memory_bytes') virtual;
create index run_by_held_memory on run (held_memory_bytes) where held_memory_bytes is not null;
