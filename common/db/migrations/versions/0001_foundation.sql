-- Applications, domains, certificates, orders, and the change feed that edges follow.

create table applications (
    id                      text primary key check (octet_length(id) <= 253),  -- the replica's keys are short
    name                    text not null,
    cname_target            text not null unique,
    secure_cname_target     text unique,                    -- none: cname_target serves both products
    application_url         text,
    webhook_url             text,
    root_path_access        text[] not null default '{}',
    tier                    text not null default 'premium',
    client_secret           bytea not null,                 -- envelopes: common.secrets
    previous_client_secret  bytea,                          -- opens too until previous_expires_at
    previous_expires_at     timestamptz,
    webhook_secret          bytea not null,
    service_auth            bytea,                          -- none: X-Service-Auth is off
    created_at              timestamptz not null default now()
);

-- A customer's host name under one product. Both products on one name belong to one application.
create table domains (
    domain                  text not null check (octet_length(domain) <= 253), -- lower-case A-labels, no trailing dot
    product                 text not null check (product in ('power', 'secure')),
    application_id          text not null references applications,
    application_url         text,                           -- none: the application's (Secure)
    root_path_access        text[],                         -- none: the application's
    redirect_to             text,
    departed_at             timestamptz,                    -- its DNS no longer leads to us
    created_at              timestamptz not null default now(),
    primary key (domain, product)
);
create index domains_of_application on domains (application_id, product, domain);

-- One row each time a domain is powered or provisioned: the limit of five in 24 hours counts these.
create table enrolments (
    domain                  text not null,
    product                 text not null,
    enrolled_at             timestamptz not null default now()
);
create index enrolments_of_domain on enrolments (domain, product, enrolled_at);

-- A domain's certificate. Released ones (their domain was deleted) are kept 7 days for the same application.
create table certificates (
    domain                  text not null check (octet_length(domain) <= 253),
    application_id          text not null references applications,
    issuer                  text not null,
    chain                   text not null,                  -- PEM, leaf first
    private_key             bytea not null,                 -- envelope, identity certificate_key_identity(domain)
    not_before              timestamptz not null,
    not_after               timestamptz not null,
    issued_at               timestamptz not null default now(),
    live_at                 timestamptz,                    -- every edge with a lease had applied it
    released_at             timestamptz,
    primary key (domain, application_id)
);
create unique index one_certificate_in_service on certificates (domain) where released_at is null;

-- The work of getting a certificate. Claimed: see common.claims.
create table orders (
    domain                  text primary key check (octet_length(domain) <= 253),
    application_id          text not null references applications,
    state                   text not null default 'running' check (state in ('running', 'issued', 'failed')),
    hold_until              timestamptz not null,           -- edges hold handshakes of this domain until then
    due_at                  timestamptz,                    -- none: nothing left to do
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text,
    phases                  jsonb not null default '{}',    -- phase -> seconds
    requested_at            timestamptz not null default now(),
    finished_at             timestamptz
);
create index orders_due on orders (due_at) where due_at is not null;

-- Edges that serve. Not routed: writing here moves no version.
create table edge_nodes (
    node_id                 text primary key,
    feed_identity           text not null,
    version                 bigint not null,
    lease_until             timestamptz not null
);

create table canary (
    key_id                  text primary key,
    envelope                bytea not null
);

-- The change feed -----------------------------------------------------------------------------------------
-- `feed` is one row: a transaction with a routed change holds its lock through commit, so that versions become
-- visible in order. `checksum` is the XOR of the digests of all live entries: a replica that keeps the same
-- sum over what it stores proves, at each catch-up, that it equals this database.

create table feed (
    only_row                boolean primary key default true check (only_row),
    version                 bigint not null default 0,
    checksum                bigint not null default 0,
    purged_version          bigint not null default 0       -- tombstones up to here may be gone
);
insert into feed default values;

create table changes (
    kind                    text not null,
    key                     text not null,
    version                 bigint not null unique,
    deleted                 boolean not null,
    digest                  bigint not null,                -- of kind, key and content; 0 when deleted
    changed_at              timestamptz not null default clock_timestamp(),
    primary key (kind, key)
);
create index tombstones on changes (changed_at) where deleted;

-- What edges must know of one row, as JSON; null when they must know nothing of it.

create function routed_content(of_row applications) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'id', of_row.id, 'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'service_auth', encode(of_row.service_auth, 'base64'))
$$;

create function routed_content(of_row domains) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'product', of_row.product, 'application_id', of_row.application_id,
        'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'redirect_to', of_row.redirect_to)
$$;

create function routed_content(of_row certificates) returns jsonb language sql immutable as $$
    select case when of_row.released_at is null then jsonb_build_object(
        'domain', of_row.domain, 'chain', of_row.chain, 'private_key', encode(of_row.private_key, 'base64'),
        'not_after', extract(epoch from of_row.not_after)) end
$$;

create function routed_content(of_row orders) returns jsonb language sql immutable as $$
    select case when of_row.state = 'running' then jsonb_build_object(
        'domain', of_row.domain, 'hold_until', extract(epoch from of_row.hold_until)) end
$$;

-- All of it, for a full copy. Kinds and keys: application <id>; route <product>/<domain>; certificate <domain>;
-- order <domain>.
create view feed_entries as
    select 'application' as kind, id as key, routed_content(a) as content from applications a
    union all
    select 'route', product || '/' || domain, routed_content(d) from domains d
    union all
    select 'certificate', domain, routed_content(c) from certificates c where released_at is null
    union all
    select 'order', domain, routed_content(o) from orders o where state = 'running';

-- One entry of it, found by the tables' own keys.
create function feed_content(of_kind text, of_key text) returns jsonb language plpgsql stable as $$
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
    end case;
end $$;

create function feed_digest(of_kind text, of_key text, content jsonb) returns bigint language sql immutable as $$
    select ('x' || left(encode(sha256(convert_to(of_kind || chr(10) || of_key || chr(10) || content::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

-- Bring the feed's entry for one key in line with the row as it now is. Entries that stay the same cost no version.
create function record_change(of_kind text, of_key text) returns void language plpgsql as $$
declare
    next_version bigint;
    content jsonb;
    new_digest bigint;
    old_digest bigint;
begin
    -- The lock comes first: what is read after it, no other commit can still change.
    select version + 1 into strict next_version from feed for update;
    content := feed_content(of_kind, of_key);
    new_digest := case when content is null then 0 else feed_digest(of_kind, of_key, content) end;
    select digest into old_digest from changes where kind = of_kind and key = of_key;
    if new_digest = coalesce(old_digest, 0) then
        return;
    end if;
    update feed set version = next_version, checksum = checksum # coalesce(old_digest, 0) # new_digest;
    insert into changes (kind, key, version, deleted, digest)
        values (of_kind, of_key, next_version, content is null, new_digest)
        on conflict (kind, key) do update
        set version = excluded.version, deleted = excluded.deleted, digest = excluded.digest, changed_at = excluded.changed_at;
    perform pg_notify('frontage_changes', '');  -- the same words twice in one transaction are sent once
end $$;

create function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        else routed ->> 'domain'
    end
$$;

-- Deferred to the end of the transaction; the argument is the kind. A renamed key tombstones the old one. Changes of
-- what edges need not know (a claim, an attempt) end here, before the feed's lock.
create function follow_change() returns trigger language plpgsql as $$
declare
    old_key text := case when tg_op <> 'INSERT' then feed_key(tg_argv[0], to_jsonb(old)) end;
    new_key text := case when tg_op <> 'DELETE' then feed_key(tg_argv[0], to_jsonb(new)) end;
begin
    if tg_op = 'UPDATE' then
        if old_key = new_key and routed_content(old) is not distinct from routed_content(new) then
            return null;
        end if;
    end if;
    if new_key is not null then
        perform record_change(tg_argv[0], new_key);
    end if;
    if old_key is not null and old_key is distinct from new_key then
        perform record_change(tg_argv[0], old_key);
    end if;
    return null;
end $$;

-- TRUNCATE would pass the row triggers by.
create function refuse_truncate() returns trigger language plpgsql as $$
begin
    raise exception 'edges follow %: use DELETE', tg_table_name;
end $$;

do $$
declare
    routed record;
begin
    for routed in
        select * from (values ('applications', 'application'), ('domains', 'route'),
                              ('certificates', 'certificate'), ('orders', 'order')) as r (name, kind)
    loop
        execute format(
            'create constraint trigger follow after insert or update or delete on %I'
            ' deferrable initially deferred for each row execute function follow_change(%L)', routed.name, routed.kind);
        execute format(
            'create trigger keep before truncate on %I execute function refuse_truncate()', routed.name);
    end loop;
end $$;
