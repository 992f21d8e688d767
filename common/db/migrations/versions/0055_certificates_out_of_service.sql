-- A statement that updates no row fires the triggers of the table all the same, and they count its domains: so none is
-- made for a certificate that leaves service after its domain is deleted.

create or replace function follow_certificate() returns trigger language plpgsql as $$
declare
    was_in_service boolean := tg_op <> 'INSERT' and old.released_at is null;
    is_in_service boolean := tg_op <> 'DELETE' and new.released_at is null;
begin
    if tg_op = 'UPDATE' and was_in_service = is_in_service and (old.domain, old.not_after, old.live_at is null)
        is not distinct from (new.domain, new.not_after, new.live_at is null) then
        return null;
    end if;
    if not is_in_service and not (was_in_service and exists (select from domains where domain = old.domain)) then
        return null;
    end if;
    update domains set active_until = null  -- set anew by `set_domain_status`
        where domain in (case when was_in_service then old.domain end, case when is_in_service then new.domain end);
    return null;
end
$$;
