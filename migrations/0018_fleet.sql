-- Agents as people look after them: what they may take, what they are called, and keys that they make themselves.

-- `drained`: it finishes what it does and gets nothing more. `disabled`: it is not let in.
alter table agent add column standing text not null default 'enabled'
    check (standing in ('enabled', 'drained', 'disabled'));
alter table agent add column standing_at integer;
alter table agent add column standing_by text;
-- JSON, by the alphabet.
alter table agent add column labels text not null default '[]';

-- Whether `key_hash` is that of a one-time key, and until when that can be exchanged.
alter table agent add column is_one_time integer not null default 0 check (is_one_time in (0, 1));
alter table agent add column one_time_until integer;
-- The one-time key that was exchanged for the agent's own: whoever asks once more because the answer was lost is known.
alter table agent add column exchanged_key_hash blob;
-- Takes the place of `key_hash` as soon as it is used for the first time; until then both open.
alter table agent add column next_key_hash blob;
-- Since when it has its present key, and since when somebody wants it to have another one.
alter table agent add column key_at integer;
alter table agent add column key_change_asked_at integer;

create unique index agent_exchanged_key on agent (exchanged_key_hash) where exchanged_key_hash is not null;
create unique index agent_next_key on agent (next_key_hash) where next_key_hash is not null;

-- Queued runs with a higher one go first.
alter table run add column priority integer not null default 0;
