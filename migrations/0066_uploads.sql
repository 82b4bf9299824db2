-- Uploaded files that are previewed before they are imported.
create table upload (
    id text primary key,
    created_by text not null,
    created_at integer not null
) strict, without rowid;

create table upload_file (
    upload_id text not null references upload (id) on delete cascade,
    place integer not null,
    name text not null,
    body blob not null,
    primary key (upload_id, place)
) strict, without rowid;
