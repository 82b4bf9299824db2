-- Memory that the target used after the idle wait, before any load, bytes.
alter table run add column idle_memory_bytes integer;
