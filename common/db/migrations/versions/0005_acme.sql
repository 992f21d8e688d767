-- ACME accounts and what edges must know of them.

-- The key of all our accounts: one for every CA, so that one thumbprint answers all challenges (RFC 8555 §8.1).
create table acme_key (
    only_row                boolean primary key default true check (only_row),
    private_key             bytea not null,                 -- envelope, identity acme/account-key
    thumbprint              text not null,                  -- RFC 7638 §3, base64url; public
    created_at              timestamptz not null default now()
);

-- Where each CA keeps our account. A row too few costs a question: the CA finds the account by its key.
create table acme_accounts (
    directory               text not null,
    thumbprint              text not null,                  -- of the key it was made with
    url                     text not null,
    caa_identities          text[] not null default '{}',   -- what CAA records call the CA, as it last said
    created_at              timestamptz not null default now(),
    primary key (directory, thumbprint)
);

create function routed_content(of_row acme_key) returns jsonb language sql immutable as $$
    select jsonb_build_object('thumbprint', of_row.thumbprint)
$$;

-- Kinds and keys: application <id>; route <product>/<domain>; certificate <domain>; order <domain>;
-- error_page <application id>; acme_key current.
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
    select 'acme_key', 'current', routed_content(k) from acme_key k;

create or replace function feed_content(of_kind text, of_key text) returns jsonb language plpgsql stable as $$
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
    end case;
end $$;

create or replace function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        when 'error_page' then routed ->> 'application_id'
        when 'acme_key' then 'current'
        else routed ->> 'domain'
    end
$$;

create constraint trigger follow after insert or update or delete on acme_key
    deferrable initially deferred for each row execute function follow_change('acme_key');
create trigger keep before truncate on acme_key execute function refuse_truncate();
