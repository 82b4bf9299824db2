-- Context switches, page faults and counters of the processor in the measured phase, as a JSON object; null if unknown.
alter table run add column counters text;
