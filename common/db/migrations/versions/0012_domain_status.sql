-- The status of a domain as a column, and how many domains an application has of each: a page of a list, and its
-- total, cost the same whatever the number of domains.

alter table domains
    -- When the domain's certificate lapses: infinity for Power without a certificate yet, -infinity while the domain's
    -- DNS has left and for Secure without a live certificate. The domain is active before that moment.
    add column active_until     timestamptz,
    -- As of the last write of the row; `settle_lapsed_domains` brings it in line with the clock. None: not yet counted.
    add column is_active        boolean;

create function domain_active_until(of_domain text, of_product text, departed_at timestamptz)
    returns timestamptz language sql stable as $$
    select case
        when departed_at is not null then '-infinity'
        when of_product = 'power' then coalesce(
            (select not_after from certificates where domain = of_domain and released_at is null), 'infinity')
        else coalesce(
            (select not_after from certificates
                where domain = of_domain and released_at is null and live_at is not null), '-infinity')
    end
$$;

create function set_domain_status() returns trigger language plpgsql as $$
begin
    new.active_until := domain_active_until(new.domain, new.product, new.departed_at);
    new.is_active := new.active_until > now();
    return new;
end
$$;
create trigger set_status before insert or update on domains for each row execute function set_domain_status();

create function follow_certificate() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        if (old.domain, old.not_after, old.live_at is null, old.released_at is null)
            is not distinct from (new.domain, new.not_after, new.live_at is null, new.released_at is null) then
            return null;
        end if;
    end if;
    update domains set active_until = null  -- set anew by `set_domain_status`
        where domain in (case when tg_op <> 'INSERT' then old.domain end, case when tg_op <> 'DELETE' then new.domain end);
    return null;
end
$$;
create trigger set_domain_status after insert or update or delete on certificates
    for each row execute function follow_certificate();

-- How many domains an application added in each span of 400 days, in each of its parts, and so on to each second. A list
-- reads the longest spans, and of each shorter kind the parts of one span: few, however long an application has been
-- there, and however many domains it added in one day. A count is spread over slots by the domain's name, so that
-- enrolments at the same time seldom wait for each other.
create table domain_tallies (
    application_id          text not null,
    product                 text not null,
    span                    interval not null,              -- one of `domain_spans`
    begins_at               timestamptz not null,           -- UTC
    is_active               boolean not null,
    slot                    smallint not null,
    domains                 bigint not null,
    primary key (application_id, product, span, begins_at, is_active, slot)
) with (fillfactor = 50);

-- From the longest to the shortest; each is a multiple of the next.
create function domain_spans() returns interval[] language sql immutable as $$
    select array['400 days', '4 days', '1 hour', '1 minute', '1 second']::interval[]
$$;

create function domain_span(span interval, added timestamptz) returns timestamptz language sql immutable as $$
    select date_bin(span, added, '2000-01-01 00:00:00+00')
$$;

create index domain_tallies_empty on domain_tallies (application_id) where domains = 0;

-- But for those that another transaction is about to write.
create function drop_empty_tallies(of_applications text[]) returns void language sql as $$
    delete from domain_tallies where ctid = any(array(
        select ctid from domain_tallies where application_id = any(of_applications) and domains = 0
        for update skip locked))
$$;

create function domain_slot(domain text) returns smallint language sql immutable as $$
    select (hashtext(domain) & 7)::smallint
$$;

-- By upsert in both directions, the one statement in which a row that comes and goes at the same time loses no count.
create function count_domains() returns trigger language plpgsql as $$
begin
    insert into domain_tallies as tally (application_id, product, span, begins_at, is_active, slot, domains)
        select application_id, product, span, domain_span(span, created_at), is_active, domain_slot(domain),
            case tg_op when 'INSERT' then 1 else -1 end * count(*)
        from moved, unnest(domain_spans()) span where is_active is not null
        group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
    on conflict (application_id, product, span, begins_at, is_active, slot) do update set
        domains = tally.domains + excluded.domains;
    if tg_op = 'DELETE' then
        perform drop_empty_tallies(array(select distinct application_id from moved));
    end if;
    return null;
end
$$;

-- What stayed in its tally cancels out.
create function recount_domains() returns trigger language plpgsql as $$
begin
    insert into domain_tallies as tally (application_id, product, span, begins_at, is_active, slot, domains)
        select application_id, product, span, domain_span(span, created_at), is_active, domain_slot(domain), sum(change)
        from (
            select application_id, product, created_at, is_active, domain, 1 as change from after_change
            union all
            select application_id, product, created_at, is_active, domain, -1 from before_change
        ) moved, unnest(domain_spans()) span where is_active is not null
        group by 1, 2, 3, 4, 5, 6 having sum(change) <> 0 order by 1, 2, 3, 4, 5, 6
    on conflict (application_id, product, span, begins_at, is_active, slot) do update set
        domains = tally.domains + excluded.domains;
    if found then
        perform drop_empty_tallies(array(select distinct application_id from before_change));
    end if;
    return null;
end
$$;

create trigger count_added after insert on domains
    referencing new table as moved for each statement execute function count_domains();
create trigger count_removed after delete on domains
    referencing old table as moved for each statement execute function count_domains();
create trigger count_changed after update on domains
    referencing old table as before_change new table as after_change
    for each statement execute function recount_domains();

-- In which second the domain was added before which `skip` others were, and how many of those were added in that very
-- second. No row if there are not so many. Without a status, of both.
create function find_domains(of_application text, of_product text, of_status boolean, skip bigint)
    returns table (begins_at timestamptz, before bigint) language plpgsql stable as $$
declare
    each_span interval;
    first timestamptz := '-infinity';
    last timestamptz := 'infinity';
begin
    foreach each_span in array domain_spans() loop
        select tally.begins_at, find_domains.skip - tally.earlier into first, skip from (
            select t.begins_at, sum(t.domains) as domains,
                sum(sum(t.domains)) over (order by t.begins_at) - sum(t.domains) as earlier
            from domain_tallies t
            where t.application_id = of_application and t.product = of_product and t.span = each_span
                and t.begins_at >= first and t.begins_at < last
                and (of_status is null or t.is_active = of_status)
            group by t.begins_at
        ) tally
        where tally.earlier + tally.domains > find_domains.skip order by tally.begins_at limit 1;
        if not found then
            return;
        end if;
        last := first + each_span;
    end loop;
    return query select first, skip;
end
$$;

-- Domains whose certificate has lapsed since they were written last, `most` of them. Returns how many there were.
create function settle_lapsed_domains(of_application text, most integer) returns bigint language sql as $$
    with lapsed as (
        select domain, product from domains
        where application_id = of_application and is_active and active_until <= now()
        order by active_until limit most for no key update  -- in the order of domains_lapsing
    ), settled as (
        update domains d set active_until = null from lapsed
        where d.domain = lapsed.domain and d.product = lapsed.product returning 1
    )
    select count(*) from settled
$$;
