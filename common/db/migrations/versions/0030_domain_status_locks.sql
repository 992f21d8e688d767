-- A released certificate says nothing of the domain, which another application may hold by now.

create or replace function follow_certificate() returns trigger language plpgsql as $$
declare
    was_in_service boolean := tg_op <> 'INSERT' and old.released_at is null;
    is_in_service boolean := tg_op <> 'DELETE' and new.released_at is null;
begin
    if tg_op = 'UPDATE' and was_in_service = is_in_service and (old.domain, old.not_after, old.live_at is null)
        is not distinct from (new.domain, new.not_after, new.live_at is null) then
        return null;
    end if;
    update domains set active_until = null  -- set anew by `set_domain_status`
        where domain in (case when was_in_service then old.domain end, case when is_in_service then new.domain end);
    return null;
end
$$;

-- Domains whose certificate has lapsed since they were written last, `most` of them. Returns how many there were. A list
-- calls this first, so it waits for no other transaction: what others have locked is left to the next list.
create or replace function settle_lapsed_domains(of_application text, most integer) returns bigint language plpgsql
    set lock_timeout = '50ms' as $$
declare
    settled bigint;
begin
    with lapsed as (
        select domain, product from domains
        where application_id = of_application and is_active and active_until <= now()
        order by active_until limit most for no key update skip locked  -- in the order of domains_lapsing
    )
    update domains d set active_until = null from lapsed where d.domain = lapsed.domain and d.product = lapsed.product;
    get diagnostics settled = row_count;
    return settled;
exception when lock_not_available then  -- of the tallies
    return 0;
end
$$;
