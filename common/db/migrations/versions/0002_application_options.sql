-- What an application can choose about how it is reached, and the page shown when it is not.

alter table applications
    add column send_host                    text not null default 'origin' check (send_host in ('origin', 'customer')),
    add column origin_server_name           text check (octet_length(origin_server_name) <= 253), -- none: the origin's host
    add column origin_verify                boolean not null default true,
    add column signature_key                bytea,          -- envelope; none: requests are not signed
    add column previous_signature_key       bytea,          -- signs too until previous_signature_until
    add column previous_signature_until     timestamptz,
    add column maintenance                  boolean not null default false;

-- A table and an entry of its own: pages are large, and an edge reads them only when something went wrong.
create table error_pages (
    application_id          text primary key references applications on delete cascade,
    html                    text not null check (octet_length(html) <= 65536)
);

create or replace function routed_content(of_row applications) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'id', of_row.id, 'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'service_auth', encode(of_row.service_auth, 'base64'),
        'send_host', of_row.send_host,
        'origin_server_name', of_row.origin_server_name,
        'origin_verify', of_row.origin_verify,
        'signature_key', encode(of_row.signature_key, 'base64'),
        'previous_signature_key', encode(of_row.previous_signature_key, 'base64'),
        'previous_signature_until', extract(epoch from of_row.previous_signature_until),
        'maintenance', of_row.maintenance)
$$;

create function routed_content(of_row error_pages) returns jsonb language sql immutable as $$
    select jsonb_build_object('application_id', of_row.application_id, 'html', of_row.html)
$$;

-- Kinds and keys: application <id>; route <product>/<domain>; certificate <domain>; order <domain>;
-- error_page <application id>.
create or replace view feed_entries as
    select 'application' as kind, id as key, routed_content(a) as content from applications a
    union all
    select 'route', product || '/' || domain, routed_content(d) from domains d
    union all
    select 'certificate', domain, routed_content(c) from certificates c where released_at is null
    union all
    select 'order', domain, routed_content(o) from orders o where state = 'running'
    union all
    select 'error_page', application_id, routed_content(p) from error_pages p;

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
    end case;
end $$;

create or replace function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        when 'error_page' then routed ->> 'application_id'
        else routed ->> 'domain'
    end
$$;

create constraint trigger follow after insert or update or delete on error_pages
    deferrable initially deferred for each row execute function follow_change('error_page');
create trigger keep before truncate on error_pages execute function refuse_truncate();

-- The contents of applications have new fields, so their digests are new.
select record_change('application', id) from applications;
