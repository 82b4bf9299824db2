-- From starting the target's process to its first verified answer, milliseconds.
alter table run add column startup_ms real;
