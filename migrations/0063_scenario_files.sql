-- A scenario is a script with files of any kind, in any folders. The bytes of a file are stored once.

create table scenario_content (
    -- The SHA-256 of the bytes; of files from before this table, the revision and the path.
    key text primary key,
    bytes blob not null
) strict;

create table scenario_file (
    -- The revision.
    sha256 text not null,
    path text not null,
    content text not null references scenario_content (key),
    primary key (sha256, path)
) strict, without rowid;

insert or ignore into scenario_content (key, bytes)
select sha256 || '/script.js', cast(script as blob) from scenario_revision;

insert or ignore into scenario_content (key, bytes)
select sha256 || '/' || file.key, cast(file.value as blob) from scenario_revision, json_each(files) as file;

insert or ignore into scenario_file (sha256, path, content)
select sha256, 'script.js', sha256 || '/script.js' from scenario_revision;

insert or ignore into scenario_file (sha256, path, content)
select sha256, file.key, sha256 || '/' || file.key from scenario_revision, json_each(files) as file;

alter table scenario_revision add column entry text not null default 'script.js';
-- Whether its runs get the target's address, and what may be that address in its files.
alter table scenario_revision add column has_address integer not null default 1;
alter table scenario_revision add column addresses text not null default '[]';
update scenario_revision set has_address = instr(script, 'BASE_URL') + instr(files, 'BASE_URL') > 0;
-- What k6 has read of the script: a JSON object.
alter table scenario_revision add column report text not null default '{"scenarios": [], "sets_load": false, "hints": []}';
alter table scenario_revision drop column script;
alter table scenario_revision drop column files;
