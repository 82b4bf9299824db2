-- The share of the measured phase in which its CPU quota held the target back, 0 to 1.
alter table run add column throttled_share real;
