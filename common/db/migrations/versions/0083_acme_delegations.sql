-- Names in the delegated challenge zone. `label` belongs to one application and domain, and is unguessable: a domain
-- whose `_acme-challenge` leads to it is proven to be the application's. `challenge_values` are the TXT records of the
-- order that runs; edges answer them.
create table acme_delegations (
    label                   text primary key check (label ~ '^[a-z2-7]{26,52}$'),
    application_id          text not null references applications on delete cascade,
    domain                  text not null check (octet_length(domain) <= 253),
    made_at                 timestamptz not null default now(),
    challenge_values        text[] not null default '{}' check (cardinality(challenge_values) <= 4),
    unique (application_id, domain)
);

create function routed_content(of_row acme_delegations) returns jsonb language sql immutable as $$
    select case when cardinality(of_row.challenge_values) > 0 then jsonb_build_object(
        'label', of_row.label, 'values', to_jsonb(of_row.challenge_values)) end
$$;

-- Another kind: challenge <label>.
create or replace view feed_entries as
    select 'application' as kind, id as key, routed_content(a) as content from applications a
    union all
    select 'route', product || '/' || domain, routed_content(d) from domains d
    union all
    select 'certificate', domain, routed_content(c) from certificates c where released_at is null
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
        return (select routed_content(c) from certificates c where domain = of_key and released_at is null);
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

create or replace function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        when 'error_page' then routed ->> 'application_id'
        when 'acme_key' then 'current'
        when 'policy' then (routed ->> 'scope') || '/' || (routed ->> 'subject')
        when 'challenge' then routed ->> 'label'
        else routed ->> 'domain'
    end
$$;

create constraint trigger follow after insert or update or delete on acme_delegations
    deferrable initially deferred for each row execute function follow_change('challenge');
create trigger keep before truncate on acme_delegations execute function refuse_truncate();
