-- Certificates that partners bring: edges present one of these in place of the domain's own, while it is here. Its
-- domain keeps an order and a certificate of ours, which takes over when this row is deleted.
create table own_certificates (
    domain                  text primary key check (octet_length(domain) <= 253),
    application_id          text not null references applications on delete cascade,
    issuer                  text not null,                    -- the authority's own name
    serial                  text not null,                    -- in hexadecimal
    names                   text[] not null,
    chain                   text not null,                    -- PEM, leaf first
    private_key             bytea not null,                   -- envelope, as that of `certificates`
    not_before              timestamptz not null,
    not_after               timestamptz not null,
    stored_at               timestamptz not null default clock_timestamp(),
    warned_days             smallint,                         -- the last warning of its end: so many days before it
    due_at                  timestamptz not null              -- the next warning, or the next attempt to end it
);
create index own_certificates_due on own_certificates (due_at);
create index own_certificates_of_application on own_certificates (application_id);

-- Keys that were made for a partner's certificate, until that is here.
create table certificate_requests (
    domain                  text primary key check (octet_length(domain) <= 253),
    application_id          text not null references applications on delete cascade,
    private_key             bytea not null,                   -- envelope, as that of `certificates`
    request                 text not null,                    -- PEM (PKCS #10)
    requested_at            timestamptz not null default now()
);
create index certificate_requests_by_age on certificate_requests (requested_at);
create index certificate_requests_of_application on certificate_requests (application_id);

create function routed_content(of_row own_certificates) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'chain', of_row.chain, 'private_key', encode(of_row.private_key, 'base64'),
        'not_after', extract(epoch from of_row.not_after))
$$;

create or replace view feed_entries as
    select 'application' as kind, id as key, routed_content(a) as content from applications a
    union all
    select 'route', product || '/' || domain, routed_content(d) from domains d
    union all
    select 'certificate', domain, routed_content(o) from own_certificates o
    union all
    select 'certificate', domain, routed_content(c) from certificates c where released_at is null
        and not exists (select from own_certificates o where o.domain = c.domain)
    union all
    select 'order', domain, routed_content(o) from orders o where state = 'running'
    union all
    select 'error_page', application_id, routed_content(p) from error_pages p
    union all
    select 'acme_key', 'current', routed_content(k) from acme_key k
    union all
    select 'policy', scope || '/' || subject, routed_content(p) from edge_policies p
    union all
    select 'challenge', label, routed_content(d) from acme_delegations d where cardinality(challenge_values) > 0;

create or replace function feed_content(of_kind text, of_key text)
    returns jsonb language plpgsql stable security definer set search_path to 'public', 'pg_temp' as $$
begin
    case of_kind
    when 'application' then
        return (select routed_content(a) from applications a where id = of_key);
    when 'route' then
        return (select routed_content(d) from domains d
            where product = split_part(of_key, '/', 1) and domain = split_part(of_key, '/', 2));
    when 'certificate' then
        return coalesce(
            (select routed_content(o) from own_certificates o where domain = of_key),
            (select routed_content(c) from certificates c where domain = of_key and released_at is null));
    when 'order' then
        return (select routed_content(o) from orders o where domain = of_key and state = 'running');
    when 'error_page' then
        return (select routed_content(p) from error_pages p where application_id = of_key);
    when 'acme_key' then
        return (select routed_content(k) from acme_key k);
    when 'policy' then
        return (select routed_content(p) from edge_policies p
            where scope = split_part(of_key, '/', 1) and subject = split_part(of_key, '/', 2));
    when 'challenge' then
        return (select routed_content(d) from acme_delegations d where label = of_key);
    end case;
end
$$;

create constraint trigger follow after insert or update or delete on own_certificates
    deferrable initially deferred for each row execute function follow_change('certificate');
create trigger keep before truncate on own_certificates execute function refuse_truncate();

-- A domain with a certificate that its partner brought is as active as that one.
create or replace function domain_active_until(of_domain text, of_product text, departed_at timestamptz)
    returns timestamptz language sql stable as $$
    select case
        when departed_at is not null then '-infinity'
        when of_product = 'power' then coalesce(
            greatest((select not_after from own_certificates where domain = of_domain),
                (select not_after from certificates where domain = of_domain and released_at is null)), 'infinity')
        else coalesce(
            greatest((select not_after from own_certificates where domain = of_domain),
                (select not_after from certificates
                    where domain = of_domain and released_at is null and live_at is not null)), '-infinity')
    end
$$;

create function follow_own_certificate() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and old.not_after = new.not_after then
        return null;
    end if;
    update domains set active_until = null where domain = coalesce(new.domain, old.domain);
    return null;
end
$$;
create trigger set_domain_status after insert or delete or update on own_certificates
    for each row execute function follow_own_certificate();
