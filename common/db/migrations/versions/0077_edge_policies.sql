-- What edges do with the requests of a domain, or of all domains of an application, instead of forwarding them. A policy
-- is of a name, whether or not it is enrolled, and survives the enrolment. What later policies say besides `answer` are
-- further fields of the same content.
create table edge_policies (
    scope                   text not null check (scope in ('domain', 'application')),
    subject                 text not null check (octet_length(subject) <= 253), -- the name, or the application's id
    status                  smallint not null check (status in (403, 451)),
    reason                  text not null check (char_length(reason) between 1 and 500), -- what visitors read
    set_at                  timestamptz not null default now(),
    primary key (scope, subject)
);

create function routed_content(of_row edge_policies) returns jsonb language sql immutable as $$
    select jsonb_build_object('scope', of_row.scope, 'subject', of_row.subject,
        'answer', jsonb_build_object('status', of_row.status, 'reason', of_row.reason))
$$;

-- Kinds and keys: application <id>; route <product>/<domain>; certificate <domain>; order <domain>;
-- error_page <application id>; acme_key current; policy <scope>/<domain or application id>.
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
    select 'policy', scope || '/' || subject, routed_content(p) from edge_policies p;

create or replace function feed_content(of_kind text, of_key text) returns jsonb language plpgsql stable
security definer set search_path = public, pg_temp as $$
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
    end case;
end $$;

create or replace function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        when 'error_page' then routed ->> 'application_id'
        when 'acme_key' then 'current'
        when 'policy' then (routed ->> 'scope') || '/' || (routed ->> 'subject')
        else routed ->> 'domain'
    end
$$;

create constraint trigger follow after insert or update or delete on edge_policies
    deferrable initially deferred for each row execute function follow_change('policy');
create trigger keep before truncate on edge_policies execute function refuse_truncate();
