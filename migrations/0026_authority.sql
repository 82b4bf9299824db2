-- Authority hangs on the id of the user who gave it, not on a name, and ends with it.
--
-- `made_by` is the id of a user; null where the owner of the data folder made it, and empty where it is not known who did.
-- Nothing refers to the user by it: a row whose maker is gone must stay one whose maker is gone, and not become one of the
-- owner's.

alter table invite add column made_by text;
alter table share add column made_by text;
alter table webhook add column made_by text;
alter table agent add column made_by text;

-- Who made what there is, by name: a user who was there before it, or the user of a token that was.
create temp table maker as
select kind, id, case when created_by is null or created_by = 'owner of the data folder' then null else coalesce(
    (select user.id from user where user.name = created_by and user.created_at <= made.created_at),
    (select coalesce(token.user_id, 'owner') from token
     where 'token ' || token.name = created_by and token.created_at <= made.created_at),
    ''
) end as made_by
from (
    select 'invite' as kind, id, created_by, created_at from invite
    union all select 'share', id, created_by, created_at from share
    union all select 'webhook', id, created_by, created_at from webhook
    union all select 'agent', agent.id, coalesce(audit.who, ''), agent.created_at from agent
    left join audit on audit.what = 'agent key made' and audit.object = agent.name
        and audit.at between agent.created_at and agent.created_at + 10000
    where is_one_time = 1
) as made;
update maker set made_by = null where made_by = 'owner';

update invite set made_by = (select made_by from maker where kind = 'invite' and maker.id = invite.id);
update share set made_by = (select made_by from maker where kind = 'share' and maker.id = share.id);
update webhook set made_by = (select made_by from maker where kind = 'webhook' and maker.id = webhook.id);
update agent set made_by = (select made_by from maker where kind = 'agent' and maker.id = agent.id) where is_one_time = 1;
drop table maker;

-- What a user holds by having made it, and the least role that gives it.
create view authority as
select 'invitation' as kind, invite.id as id, invite.made_by as user_id, 'admin' as role, invite.role as name,
       expires_at as ends_at
from invite where used_at is null and withdrawn_at is null and user_id is null
union all
select 'recovery link', invite.id, invite.made_by, 'admin', user.name, expires_at
from invite join user on user.id = invite.user_id where used_at is null and withdrawn_at is null
union all
select 'agent key', id, made_by, 'admin', name, one_time_until from agent where is_one_time = 1 and revoked_at is null
union all
select 'share link', id, made_by, 'member', title, expires_at from share where revoked_at is null
union all
select 'webhook', id, made_by, 'admin', url, null from webhook;

-- Triggers end it, in the transaction that ends what it hangs on, so that no way to do that can forget it.
create trigger authority_of_removed before delete on user
begin
    update invite set withdrawn_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = old.id and used_at is null and withdrawn_at is null;
    update agent set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = old.id and is_one_time = 1 and revoked_at is null;
    update share set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = old.id and revoked_at is null;
    delete from webhook where made_by = old.id;
end;

create trigger authority_of_administrators after update of role on user when new.role <> 'admin'
begin
    update invite set withdrawn_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = new.id and used_at is null and withdrawn_at is null;
    update agent set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = new.id and is_one_time = 1 and revoked_at is null;
    delete from webhook where made_by = new.id;
end;

create trigger authority_of_members after update of role on user when new.role = 'viewer'
begin
    update share set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
    where made_by = new.id and revoked_at is null;
end;

-- What outlived its maker until today ends today. Webhooks stay to be seen, and are sent nothing.
update invite set withdrawn_at = cast(unixepoch('subsec') * 1000 as integer)
where used_at is null and withdrawn_at is null and made_by is not null
    and not exists (select 1 from user where user.id = made_by and user.role = 'admin');
update agent set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
where is_one_time = 1 and revoked_at is null and made_by is not null
    and not exists (select 1 from user where user.id = made_by and user.role = 'admin');
update share set revoked_at = cast(unixepoch('subsec') * 1000 as integer)
where revoked_at is null and made_by is not null
    and not exists (select 1 from user where user.id = made_by and user.role <> 'viewer');

create index invite_made_by on invite (made_by) where made_by is not null;
create index share_made_by on share (made_by) where made_by is not null;
create index webhook_made_by on webhook (made_by) where made_by is not null;
create index agent_made_by on agent (made_by) where made_by is not null;

-- When the user of a session last proved by a passkey who it is.
alter table session add column proved_at integer not null default 0;
