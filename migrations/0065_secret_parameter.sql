-- Values of parameters that are secrets. Plans and runs have the id instead.
create table secret_parameter (
    id text primary key,
    value text not null unique
) strict, without rowid;
