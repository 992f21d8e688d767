-- The schema as it was released first. Later steps are files of their own beside this one.

set local check_function_bodies = off;  -- functions stand beside their tables, in whatever order they call each other

-- The newest step that was taken: one row, kept by `common.db.migrate`.
create table alembic_version (
    version_num             varchar(32) primary key
);

-- What indexes and columns compute ------------------------------------------------------------------------------------

-- Each three characters of a name, by which a part of it is found. As numbers, since names are ASCII; a name begins
-- with a ^ of ours, so that its first two characters are found too.
create function name_grams(name text) returns integer[] language sql immutable strict parallel safe as $$
    select array_agg(distinct
        (ascii(substr('^' || name, place, 1)) * 128 + ascii(substr('^' || name, place + 1, 1))) * 128
        + ascii(substr('^' || name, place + 2, 1)))
    from generate_series(1, length(name) - 1) place
$$;

create function monitored_name(domain text, subdomain text) returns text language sql immutable parallel safe as $$
    select case when subdomain is null then domain else subdomain || '.' || domain end
$$;

create function domain_slot(domain text) returns smallint language sql immutable as $$
    select (hashtext(domain) & 7)::smallint
$$;

create function domain_span(span interval, added timestamptz) returns timestamptz language sql immutable as $$
    select date_bin(span, added, '2000-01-01 00:00:00+00')
$$;

-- From the longest to the shortest; each is a multiple of the next.
create function domain_spans() returns interval[] language sql immutable as $$
    select array['400 days', '4 days', '1 hour', '1 minute', '1 second']::interval[]
$$;

create function monitored_span(span text, added timestamptz) returns timestamptz language sql immutable as $$
    select date_bin(('1 ' || span)::interval, added, '2000-01-01 00:00:00+00')
$$;

-- Accounts ------------------------------------------------------------------------------------------------------------

create table organisations (
    id                      text primary key,
    name                    text not null unique,
    created_at              timestamptz not null default now()
);

create table users (
    id                      text primary key,
    email                   text not null unique,             -- lower case
    password_hash           text,                             -- argon2id (PHC string); none: signs in by link only
    is_operator             boolean not null default false,   -- sees and changes every application
    created_at              timestamptz not null default now(),
    last_sign_in_at         timestamptz,
    credentials_ended_at    timestamptz                       -- what signed the user in before it has ended
);

create table memberships (
    user_id                 text not null references users on delete cascade,
    organisation_id         text not null references organisations on delete cascade,
    role                    text not null check (role in ('owner', 'developer', 'viewer')),
    created_at              timestamptz not null default now(),
    primary key (user_id, organisation_id)
);
create index memberships_of_organisation on memberships (organisation_id);

-- API keys of users: each opens the API as its user, up to `permission`.
create table user_keys (
    id                      text primary key,                 -- key_ and 16 hexadecimal digits; no secret
    token_hash              bytea not null unique,            -- SHA-256 of the key
    user_id                 text not null references users on delete cascade,
    name                    text not null,
    permission              text not null check (permission in ('view', 'change', 'own')),
    created_at              timestamptz not null default now(),
    expires_at              timestamptz not null,
    used_at                 timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02);
create index user_keys_by_expiry on user_keys (expires_at);
create index user_keys_of_user on user_keys (user_id, created_at, id);

-- A signed-in browser. Its cookie is kept as a hash, so that a copy of the database opens no session.
create table sessions (
    token_hash              bytea primary key,                -- SHA-256
    user_id                 text not null references users on delete cascade,
    address                 text not null,
    user_agent              text not null,
    created_at              timestamptz not null default now(),
    seen_at                 timestamptz not null default now(),
    expires_at              timestamptz not null,
    -- When the user last proved to be there, after signing in.
    confirmed_at            timestamptz,
    has_ended               boolean not null default false,
    by_key                  text references user_keys on delete cascade  -- ends with the API key that made it
) with (autovacuum_vacuum_scale_factor = 0.02);
create index sessions_by_expiry on sessions (expires_at);
create index sessions_by_key on sessions (by_key) where by_key is not null;
create index sessions_of_user on sessions (user_id, created_at);

-- A link that signs in once.
create table sign_in_links (
    token_hash              bytea primary key,                -- SHA-256
    user_id                 text not null references users on delete cascade,
    expires_at              timestamptz not null,
    by_key                  text references user_keys on delete cascade  -- ends with the API key that made it
) with (autovacuum_vacuum_scale_factor = 0.02);
create index sign_in_links_by_expiry on sign_in_links (expires_at);
create index sign_in_links_by_key on sign_in_links (by_key) where by_key is not null;
create index sign_in_links_of_user on sign_in_links (user_id);

-- Passkeys: public keys of authenticators, with which users sign in beside their password.
create table passkeys (
    credential_id           bytea primary key,
    user_id                 text not null references users on delete cascade,
    public_key              bytea not null,                   -- COSE_Key (RFC 9052); not a secret
    -- of the last assertion; 0 where the authenticator has none
    sign_count              bigint not null,
    name                    text not null,
    created_at              timestamptz not null default now(),
    used_at                 timestamptz
);
create index passkeys_of_user on passkeys (user_id, created_at);

-- Applications --------------------------------------------------------------------------------------------------------

create table applications (
    id                      text primary key check (octet_length(id) <= 253),  -- the replica's keys are short
    name                    text not null,
    cname_target            text not null unique,
    secure_cname_target     text unique,                      -- none: cname_target serves both products
    application_url         text,
    webhook_url             text,
    root_path_access        text[] not null default '{}',
    tier                    text not null default 'premium',
    client_secret           bytea not null,                   -- envelopes: common.secrets
    previous_client_secret  bytea,                            -- opens too until previous_expires_at
    previous_expires_at     timestamptz,
    webhook_secret          bytea not null,
    service_auth            bytea,                            -- none: X-Service-Auth is off
    created_at              timestamptz not null default now(),
    send_host               text not null default 'origin' check (send_host in ('origin', 'customer')),
    origin_server_name      text check (octet_length(origin_server_name) <= 253),  -- none: the origin's host
    origin_verify           boolean not null default true,
    signature_key           bytea,                            -- envelope; none: requests are not signed
    previous_signature_key  bytea,                            -- signs too until previous_signature_until
    previous_signature_until timestamptz,
    maintenance             boolean not null default false,
    previous_webhook_secret bytea,                            -- envelope; signs too until previous_webhook_until
    previous_webhook_until  timestamptz,
    -- Set while `app delete` takes the application apart, batch by batch: no token of it works any more.
    deleting_at             timestamptz,
    connect                 boolean not null default true,    -- has subscribed to the connect modal
    buffer_uploads_bytes    bigint check (buffer_uploads_bytes > 0),  -- none: uploads are streamed
    organisation_id         text,
    next_service_auth       bytea,                            -- envelope
    cname_target_set_at     timestamptz,
    secure_cname_target_set_at timestamptz,
    secret_generation       integer not null default 1,
    constraint applications_organisation foreign key (organisation_id) references organisations
);
create index applications_being_deleted on applications (deleting_at) where deleting_at is not null;
create index applications_by_name on applications (lower(name), id);
create index applications_by_reversed_secure_target
    on applications (reverse(secure_cname_target) collate "C") where secure_cname_target is not null;
create index applications_by_reversed_target on applications (reverse(cname_target) collate "C");
create index applications_of_organisation on applications (organisation_id, id) where organisation_id is not null;

-- A table and an entry of its own: pages are large, and an edge reads them only when something went wrong.
create table error_pages (
    application_id          text primary key references applications on delete cascade,
    html                    text not null check (octet_length(html) <= 65536)
);

-- What edges do with the requests of a domain, or of all domains of an application, instead of forwarding them. A
-- policy
-- is of a name, whether or not it is enrolled, and survives the enrolment. What later policies say besides `answer` are
-- further fields of the same content.
create table edge_policies (
    scope                   text not null check (scope in ('domain', 'application')),
    subject                 text not null check (octet_length(subject) <= 253),  -- the name, or the application's id
    status                  smallint not null check (status in (403, 451)),
    reason                  text not null check (char_length(reason) between 1 and 500),  -- what visitors read
    set_at                  timestamptz not null default now(),
    primary key (scope, subject)
);

-- Every change, written in the transaction that makes it. Ids sort by time. It refers to no other table: what it
-- describes may be gone.
create table audit (
    id                      text primary key default
        'aud_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
        || left(replace(gen_random_uuid()::text, '-', ''), 20),
    at                      timestamptz not null default clock_timestamp(),
    way                     text not null check (way in ('api', 'dashboard', 'command', 'monitor')),
    actor                   text not null,                    -- an application's id, a user's address, a login name
    request_id              text,
    organisation_id         text,
    application_id          text,
    action                  text not null,                    -- such as domain.power
    subject                 text not null,                    -- what was changed: a domain, an id
    before                  jsonb,                            -- only what differs
    after                   jsonb
) with (autovacuum_vacuum_scale_factor = 0.02);
create index audit_by_age on audit (at);
create index audit_of_application on audit (application_id, id) where application_id is not null;
create index audit_of_organisation on audit (organisation_id, id) where organisation_id is not null;
create index audit_of_request on audit (request_id, id) where request_id is not null;
create index audit_of_subject on audit (subject, id);

-- The answers of requests that carry an Idempotency-Key. `key` is a digest of the key with all that it holds for.
-- Without a status the request is running, or its process died.
create table idempotent_requests (
    application_id          text not null,
    key                     bytea not null,
    request                 bytea not null,                   -- SHA-256 of the body
    started_at              timestamptz not null default now(),
    status                  smallint,
    body                    bytea,
    primary key (application_id, key)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index idempotent_requests_by_age on idempotent_requests (started_at);

-- Domains -------------------------------------------------------------------------------------------------------------

-- A customer's host name under one product. Both products on one name belong to one application.
create table domains (
    domain                  text not null check (octet_length(domain) <= 253),  -- lower-case A-labels, no trailing dot
    product                 text not null check (product in ('power', 'secure')),
    application_id          text not null references applications,
    application_url         text,                             -- none: the application's (Secure)
    root_path_access        text[],                           -- none: the application's
    redirect_to             text,
    departed_at             timestamptz,                      -- its DNS no longer leads to us
    created_at              timestamptz not null default now(),
    -- Not routed: common.ownership.Claim, or operator. None: enrolled before claims were kept.
    claim                   text,
    -- When the domain's certificate lapses: infinity for Power without a certificate yet, -infinity while the
    -- domain's DNS has left and for Secure without a live certificate. The domain is active before that moment.
    active_until            timestamptz,
    -- As of the last write of the row; `settle_lapsed_domains` brings it in line with the clock. None: not yet
    -- counted.
    is_active               boolean,
    updated_at              timestamptz,
    origin_vouched          boolean not null default true,
    primary key (domain, product)
);
create index domains_by_grams on domains using gin (name_grams(domain));
create index domains_inactive_of_everyone
    on domains (product, domain) include (application_id, is_active) where not is_active;
create index domains_inactive_of_everyone_by_age
    on domains (product, created_at, domain) include (application_id, is_active) where not is_active;
create index domains_lapsing on domains (application_id, active_until) where is_active;
create index domains_lapsing_next on domains (active_until) where is_active;
create index domains_listed on domains (application_id, product, is_active, created_at, domain);
create index domains_of_application on domains (application_id, product, domain);
create index domains_of_application_by_age on domains (application_id, product, created_at, domain);
create index domains_of_application_by_expiry on domains (application_id, product, active_until, domain);
create index domains_of_application_by_status on domains (application_id, product, is_active, domain);
create index domains_of_everyone on domains (product, domain) include (application_id, is_active);
create index domains_of_everyone_by_age on domains (product, created_at, domain) include (application_id, is_active);
create index domains_of_everyone_by_expiry on domains (product, active_until, domain) include (application_id);

-- One row each time a domain is powered or provisioned: the limit of five in 24 hours counts these.
create table enrolments (
    domain                  text not null,
    product                 text not null,
    enrolled_at             timestamptz not null default now(),
    -- The limit counts for each application. None: a row from before it did.
    application_id          text
) with (autovacuum_vacuum_scale_factor = 0.02);
create index enrolments_by_age on enrolments (enrolled_at);
create index enrolments_of_domain on enrolments (domain, product, enrolled_at);

-- Names that an application has given up, or lost: domains, and cname targets. No key on applications: a name outlives
-- the application that held it.
create table former_holders (
    domain                  text not null check (octet_length(domain) <= 253),
    application_id          text not null,
    released_at             timestamptz not null default now(),
    -- Until when the name was a cname target of the application; none: a domain that it held. `released_at` of a
    -- former target is infinity as long as the application is there.
    target_until            timestamptz,
    primary key (domain, application_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index former_holders_by_age on former_holders (released_at);
create index former_targets_of_application
    on former_holders (application_id, target_until desc) where target_until is not null;

-- Where cname targets were last seen to lead, by monitors.
create table target_sightings (
    target                  text primary key,
    due_at                  timestamptz not null default now(),
    here_at                 timestamptz,                      -- when it was last seen to lead to our targets
    -- the first and the last time it was seen to lead elsewhere,
    elsewhere_since         timestamptz,
    elsewhere_at            timestamptz                       -- since it last led here
) with (autovacuum_vacuum_scale_factor = 0.02);
create index target_sightings_by_due on target_sightings (due_at);

-- Certificates --------------------------------------------------------------------------------------------------------

-- The key of all our accounts: one for every CA, so that one thumbprint answers all challenges (RFC 8555 §8.1).
create table acme_key (
    only_row                boolean primary key default true check (only_row),
    private_key             bytea not null,                   -- envelope, identity acme/account-key
    thumbprint              text not null,                    -- RFC 7638 §3, base64url; public
    created_at              timestamptz not null default now()
);

-- Where each CA keeps our account. A row too few costs a question: the CA finds the account by its key.
create table acme_accounts (
    directory               text not null,
    thumbprint              text not null,                    -- of the key it was made with
    url                     text not null,
    caa_identities          text[] not null default '{}',     -- what CAA records call the CA, as it last said
    created_at              timestamptz not null default now(),
    primary key (directory, thumbprint)
);

-- A domain's certificate. Released ones (their domain was deleted) are kept 7 days for the same application.
create table certificates (
    domain                  text not null check (octet_length(domain) <= 253),
    application_id          text not null,
    issuer                  text not null,
    chain                   text not null,                    -- PEM, leaf first
    private_key             bytea not null,                   -- envelope, identity certificate_key_identity(domain)
    not_before              timestamptz not null,
    not_after               timestamptz not null,
    issued_at               timestamptz not null default now(),
    live_at                 timestamptz,                      -- every edge with a lease had applied it
    released_at             timestamptz,
    revoke_reason           smallint,                         -- RFC 5280 §5.3.1; such a one is never adopted
    primary key (domain, application_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index certificates_by_expiry on certificates (not_after) where released_at is null;
create index certificates_by_release on certificates (released_at) where released_at is not null;
create index certificates_of_application_by_expiry
    on certificates (application_id, not_after) where released_at is null;
create unique index one_certificate_in_service on certificates (domain) where released_at is null;

-- The work of getting a certificate. Claimed: see common.claims.
create table orders (
    domain                  text primary key check (octet_length(domain) <= 253),
    application_id          text not null,
    state                   text not null default 'running' check (state in ('running', 'issued', 'failed')),
    hold_until              timestamptz not null,             -- edges hold handshakes of this domain until then
    due_at                  timestamptz,                      -- none: nothing left to do
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text,
    phases                  jsonb not null default '{}',      -- phase -> seconds
    requested_at            timestamptz not null default now(),
    finished_at             timestamptz,
    -- What the order is for: a domain's first certificate; the renewal that is due by itself, which every order
    -- waits for once its certificate is live; a requested renewal; a certificate in place of one that is revoked.
    kind                    text not null default 'new' check (kind in ('new', 'renewal', 'manual', 'replacement')),
    -- chosen once, within the issuer's window where it has one
    renew_at                timestamptz,
    failed_at               timestamptz,                      -- failing since: its owner has been notified
    -- The order at the CA that this run placed: how another monitor carries it on.
    placed_issuer           text,
    placed_url              text,
    placed_at               timestamptz,
    placed_key              bytea,                            -- envelope: what the certificate will be for
    recheck_requested_at    timestamptz,                      -- until it is done
    rechecked_at            timestamptz,                      -- when one that was asked for was last done
    request_id              text,                             -- of the request that made it, or made it run again
    issued_kind             text,                             -- what its last finished run was for
    check ((placed_url is null) = ((placed_issuer is null) and (placed_at is null) and (placed_key is null)))
);
create index orders_awaited
    on orders (due_at) where due_at is not null and kind <> 'renewal' and recheck_requested_at is null;
create index orders_awaited_of_application
    on orders (application_id, due_at)
    where due_at is not null and kind <> 'renewal' and recheck_requested_at is null;
create index orders_due on orders (due_at) where due_at is not null;
create index orders_failing on orders (last_error, domain) where last_error is not null;
create index orders_recheck_due on orders (due_at) where recheck_requested_at is not null;
create index orders_rechecks_of_application on orders (application_id, due_at) where recheck_requested_at is not null;
create index orders_routine_of_application
    on orders (application_id, due_at)
    where due_at is not null and kind = 'renewal' and recheck_requested_at is null;

-- Challenges that were answered: none is accepted twice.
create table answered_challenges (
    challenge_hash          bytea primary key,                -- SHA-256
    answered_at             timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0.02);
create index answered_challenges_by_age on answered_challenges (answered_at);

-- What was ordered at authorities that count. An entry is made before the order is sent; it counts even when nobody
-- lived to see the answer.
create table ca_ledger (
    id                      bigint generated always as identity primary key,
    issuer                  text not null,
    kind                    text not null check (kind in ('order', 'failed_validation')),
    domain                  text not null,
    registered_domain       text not null,
    -- reserved: perhaps sent; placed: the CA has it; failed: it is over, and there will be no certificate
    state                   text not null default 'reserved' check (state in ('reserved', 'placed', 'failed')),
    is_exempt               boolean not null default false,   -- a renewal the CA suggested: it does not count
    order_url               text,
    taken_at                timestamptz not null default clock_timestamp(),
    application_id          text                              -- none: from before
) with (autovacuum_vacuum_scale_factor = 0.02);
create index ca_ledger_by_age on ca_ledger (taken_at);
create index ca_ledger_of_account on ca_ledger (issuer, kind, taken_at);
create index ca_ledger_of_domain on ca_ledger (issuer, domain, taken_at);
create index ca_ledger_of_order on ca_ledger (order_url) where order_url is not null;
create index ca_ledger_of_registered_domain on ca_ledger (issuer, registered_domain, taken_at);

-- Certificates to be revoked. Claimed: see common.claims. Not tied to the certificate's row, which is replaced
-- meanwhile.
create table revocations (
    id                      bigint generated always as identity primary key,
    domain                  text not null,
    application_id          text not null,
    issuer                  text not null,
    chain                   text not null,                    -- PEM, leaf first
    reason                  smallint not null,                -- RFC 5280 §5.3.1
    requested_at            timestamptz not null default now(),
    due_at                  timestamptz,                      -- none: done
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text,
    revoked_at              timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02);
create index revocations_by_age on revocations (revoked_at) where revoked_at is not null;
create index revocations_due on revocations (due_at) where due_at is not null;
create index revocations_of_domain on revocations (domain) where due_at is not null;

-- Domain status and tallies -------------------------------------------------------------------------------------------

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

create function follow_certificate() returns trigger language plpgsql as $$
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

-- Domains whose certificate has lapsed since they were written last, `most` of them. Returns how many there were. A
-- list
-- calls this first, so it waits for no other transaction: what others have locked is left to the next list.
create function settle_lapsed_domains(of_application text, most integer)
    returns bigint language plpgsql set lock_timeout to '50ms' as $$
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

-- How many domains an application added in each span of 400 days, in each of its parts, and so on to each second. A
-- list
-- reads the longest spans, and of each shorter kind the parts of one span: few, however long an application has been
-- there, and however many domains it added in one day. A count is spread over slots by the domain's name, so that
-- enrolments at the same time seldom wait for each other.
create table domain_tallies (
    application_id          text not null,
    product                 text not null,
    span                    interval not null,                -- one of `domain_spans`
    begins_at               timestamptz not null,             -- UTC
    is_active               boolean not null,
    slot                    smallint not null,
    domains                 bigint not null,
    primary key (application_id, product, span, begins_at, is_active, slot)
) with (fillfactor = 50);
create index domain_tallies_empty on domain_tallies (application_id) where domains = 0;

-- But for those that another transaction is about to write.
create function drop_empty_tallies(of_applications text[]) returns void language sql as $$
    delete from domain_tallies where ctid = any(array(
        select ctid from domain_tallies where application_id = any(of_applications) and domains = 0
        for update skip locked))
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

-- In which second the domain was added before which `skip` others were, and how many of those were added in that very
-- second. No row if there are not so many. Without a status, of both.
create function find_domains(
    of_application text, of_product text, of_status boolean, skip bigint, near bigint default 0
)
    returns table(begins_at timestamptz, before bigint) language plpgsql stable as $$
declare
    each_span interval;
    first timestamptz := '-infinity';
    last timestamptz := 'infinity';
begin
    foreach each_span in array domain_spans() loop
        exit when skip <= near;
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

create trigger count_added after insert on domains referencing new table as moved
    for each statement execute function count_domains();
create trigger count_changed after update on domains referencing old table as before_change new table as after_change
    for each statement execute function recount_domains();
create trigger count_removed after delete on domains referencing old table as moved
    for each statement execute function count_domains();
create trigger set_status before insert or update on domains
    for each row execute function set_domain_status();

create trigger set_domain_status after insert or delete or update on certificates
    for each row execute function follow_certificate();

-- Monitored domains ---------------------------------------------------------------------------------------------------

-- A name whose records are watched for one application: the apex, or one subdomain of it. Two applications may watch
-- the same. The row is also the work of checking it (claimed: see common.claims). A claim moves no indexed column, so
-- that it rewrites the row alone; hence the room left in each page. What was due leaves a dead entry at the
-- beginning of
-- the due list, which every claim passes: a million domains left 200,000 before the usual vacuum (seen: 30 ms a claim).
create table monitored_domains (
    id                      text primary key,
    application_id          text not null references applications,
    domain                  text not null check (octet_length(domain) <= 253),  -- registrable, lower-case A-labels
    subdomain               text,                             -- none: the apex
    user_id                 text,
    job_id                  text,
    user_email              text,
    source                  text not null default 'api' check (source in ('api', 'connect')),
    date_added              timestamptz not null default clock_timestamp(),
    -- array of records as the API shows them; hosts relative to the apex
    dns_records             jsonb not null,
    state                   text not null default 'unchecked' check (state in ('unchecked', 'present', 'missing')),
    records_present         jsonb,                            -- as far as is known from the last check and those before
    records_missing         jsonb,
    missing_records_last_detected timestamptz,
    last_checked_at         timestamptz,                      -- when the last check began, whatever it could find out
    evidence                jsonb,                            -- of the last check: who answered what, when
    -- what was last reported to its partner; none: nothing is missing
    reported_missing        jsonb,
    alarm_held_at           timestamptz,                      -- since when an alarm to its partner is held back
    updated_at              timestamptz,
    vouched                 boolean not null default false
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index monitored_by_date on monitored_domains (application_id, date_added, id);
create index monitored_by_grams on monitored_domains using gin (name_grams(monitored_name(domain, subdomain)));
create index monitored_held on monitored_domains (alarm_held_at) where alarm_held_at is not null;
create index monitored_listed
    on monitored_domains (monitored_name(domain, subdomain), application_id) include (domain, subdomain, state);
create index monitored_listed_by_age
    on monitored_domains (date_added, monitored_name(domain, subdomain), application_id)
    include (domain, subdomain, state);
create index monitored_not_present
    on monitored_domains (state, monitored_name(domain, subdomain), application_id) include (domain, subdomain)
    where state <> 'present';
create index monitored_not_present_by_age
    on monitored_domains (state, date_added, monitored_name(domain, subdomain), application_id)
    include (domain, subdomain)
    where state <> 'present';
create index monitored_of_application_by_age
    on monitored_domains (application_id, date_added, monitored_name(domain, subdomain)) include (domain, subdomain);
create index monitored_of_application_in_state
    on monitored_domains (application_id, state, monitored_name(domain, subdomain)) include (domain, subdomain);
create index monitored_of_application_in_state_by_age
    on monitored_domains (application_id, state, date_added, monitored_name(domain, subdomain))
    include (domain, subdomain);
create index monitored_of_application_listed
    on monitored_domains (application_id, monitored_name(domain, subdomain)) include (domain, subdomain);
create unique index monitored_once on monitored_domains (application_id, domain, coalesce(subdomain, ''));

create table checks (
    id                      text primary key references monitored_domains on delete cascade,  -- its monitored domain's
    application_id          text not null,                    -- its monitored domain's
    requested_at            timestamptz default clock_timestamp(),  -- added or changed since it was last looked at
    due_at                  timestamptz not null default clock_timestamp(),
    lease_until             timestamptz,
    fence                   bigint not null default 0,        -- moves with every claim, and whenever dns_records change
    attempts                integer not null default 0,
    turned_missing_at       timestamptz,                      -- when a check last found it missing that was all present
    rechecked_at            timestamptz,                      -- last checked with something known from before
    has_long_ttl            boolean not null default false
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index checks_due on checks (due_at);
create index checks_rechecked on checks (rechecked_at);
-- Each application's own lines, so that one of them with much to do keeps no other waiting.
create index checks_requested on checks (application_id, due_at) where requested_at is not null;
create index checks_routine on checks (application_id, due_at) where requested_at is null;
create index checks_turned on checks (turned_missing_at) where turned_missing_at is not null;

-- A trigger makes every monitored domain due, whichever version of the API adds it.
create function schedule_check() returns trigger language plpgsql as $$
begin
    insert into checks (id, application_id) select id, application_id from added;
    return null;
end
$$;

-- How many monitored domains an application added on each day, within it in each minute, and within that in each
-- second:
-- a page far down a list of a million is found by adding up these, not by walking a million rows.
create table monitored_tallies (
    application_id          text not null,
    span                    text not null check (span in ('day', 'minute', 'second')),
    begins_at               timestamptz not null,             -- UTC
    domains                 bigint not null,
    primary key (application_id, span, begins_at)
) with (fillfactor = 50);

-- By upsert in both directions, the one statement in which a row that comes and goes at the same time loses no count.
create function count_monitored() returns trigger language plpgsql as $$
begin
    insert into monitored_tallies as tally (application_id, span, begins_at, domains)
        select application_id, span, monitored_span(span, date_added), count(*)
        from moved, unnest(array['day', 'minute', 'second']) span group by 1, 2, 3 order by 1, 2, 3
    on conflict (application_id, span, begins_at) do update set
        domains = tally.domains + case tg_op when 'INSERT' then 1 else -1 end * excluded.domains;
    if tg_op = 'DELETE' then
        delete from monitored_tallies tally using moved, unnest(array['day', 'minute', 'second']) span
            where tally.application_id = moved.application_id and tally.span = span.span and tally.domains = 0
            and tally.begins_at = monitored_span(span.span, moved.date_added);
    end if;
    return null;
end
$$;

-- In which second the domain was added before which `skip` others were, from `first` on and before `last`, and how
-- many of those were added in that very second. No row if there are not so many.
create function find_monitored(of_application text, first timestamptz, last timestamptz, skip bigint)
    returns table(begins_at timestamptz, before bigint) language plpgsql stable as $$
declare
    each_span text;
begin
    foreach each_span in array array['day', 'minute', 'second'] loop
        select tally.begins_at, find_monitored.skip - tally.earlier into first, skip from (
            select t.begins_at, t.domains, sum(t.domains) over (order by t.begins_at) - t.domains as earlier
            from monitored_tallies t where t.application_id = of_application and t.span = each_span
                and t.begins_at >= find_monitored.first and t.begins_at < find_monitored.last
        ) tally
        where tally.earlier + tally.domains > find_monitored.skip order by tally.begins_at limit 1;
        if not found then
            return;
        end if;
        last := first + ('1 ' || each_span)::interval;
    end loop;
    return query select first, skip;
end
$$;

create trigger count_added after insert on monitored_domains referencing new table as moved
    for each statement execute function count_monitored();
create trigger count_removed after delete on monitored_domains referencing old table as moved
    for each statement execute function count_monitored();
create trigger schedule_check after insert on monitored_domains referencing new table as added
    for each statement execute function schedule_check();

-- Whether an operator has let alarms out in spite of their number: one row, locked by a transaction that raises some.
create table mass_guard (
    only_row                boolean primary key default true check (only_row),
    released_until          timestamptz not null default '-infinity'
);

-- What runs: monitors hold leases as edges do, and an edge reports beside its version whether it can serve and follow.
create table monitor_nodes (
    node_id                 text primary key,
    host                    text not null,
    issuer                  text not null,                    -- whose certificates it obtains
    stopped                 text[] not null default '{}',     -- work that failed and is not running now
    started_at              timestamptz not null default clock_timestamp(),
    lease_until             timestamptz not null,
    software_version        text
);

-- What the checks say of themselves: one row, written by whichever monitor looked last. Old news is bad news.
create table monitor_health (
    only_row                boolean primary key default true check (only_row),
    is_healthy              boolean not null,
    reason                  text,                             -- why not, in words for the operator
    executed_at             timestamptz                       -- none: no check yet
);

-- Connect -------------------------------------------------------------------------------------------------------------

-- What browsers' flows may ask for. The same configuration is registered once: `digest` is its SHA-256.
create table connect_configurations (
    id                      text primary key,
    application_id          text not null references applications on delete cascade,
    digest                  bytea not null,
    config                  jsonb not null,
    -- of the client secret that signed the registering token; none: no token did
    secret_generation       integer,
    created_at              timestamptz not null default clock_timestamp(),
    expires_at              timestamptz                       -- none: it stays until it is removed
) with (autovacuum_vacuum_scale_factor = 0.02);
create unique index connect_configurations_by_digest on connect_configurations (application_id, digest);
create index connect_configurations_by_expiry on connect_configurations (expires_at);
create index connect_configurations_by_time on connect_configurations (application_id, created_at desc, id desc);

-- Sharing links: what /share/<id> shows to every holder of the link.
create table shares (
    id                      text primary key check (octet_length(id) >= 22),  -- 128 bits of chance and more
    application_id          text not null references applications on delete cascade,
    domain                  text,
    subdomain               text,
    records                 json not null,
    created_at              timestamptz not null default now(),
    expires_at              timestamptz not null,
    config                  jsonb,                            -- none: the records alone
    job_id                  text,
    user_id                 text,
    vouched                 boolean not null default false,
    parent_id               text,
    configuration_id        text,
    secret_generation       integer
) with (autovacuum_vacuum_scale_factor = 0.02);
create index shares_by_configuration on shares (configuration_id) where configuration_id is not null;
create index shares_by_expiry on shares (expires_at);
create index shares_by_parent on shares (parent_id) where parent_id is not null;
create index shares_of_application on shares (application_id);

-- The row is also the work of it (claimed: see common.claims). Credentials are never part of it.
create table connect_flows (
    id                      text primary key,
    application_id          text not null references applications,
    job_id                  text not null,
    user_id                 text,
    state                   text not null,                    -- common.connect.states
    version                 bigint not null default 1,        -- moves with every change that a person can see
    config                  jsonb not null,                   -- as sent, without tokens
    warnings                jsonb not null default '[]',
    domain                  text check (octet_length(domain) <= 253),  -- the apex; none: not chosen yet
    subdomain               text,
    requested               jsonb not null default '[]',      -- the records, placeholders resolved, and their purposes
    looked                  jsonb,                            -- what the last look found: provider, ways, conflicts
    plan                    jsonb,                            -- what has to change, and the digest it holds for
    way                     text,                             -- by which it was or is applied
    journal                 jsonb not null default '[]',      -- record sets written, each with what was there before
    statuses                jsonb not null default '[]',      -- of the requested records, in their order
    enrolments              jsonb not null default '[]',      -- what the live records enrol, and what came of it
    handover                jsonb,                            -- Domain Connect: hash of the state expected back
    error                   jsonb,                            -- why the flow does not go on, in words for people
    created_at              timestamptz not null default clock_timestamp(),
    updated_at              timestamptz not null default clock_timestamp(),
    since                   timestamptz,                      -- when the records began to be looked for
    looks                   integer not null default 0,       -- at the records, since then
    completed_at            timestamptz,                      -- when domain.flow.completed was recorded
    added_at                timestamptz,                      -- when domain.added was recorded
    erase_at                timestamptz not null,
    due_at                  timestamptz default clock_timestamp(),  -- none: nothing happens by itself
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text,
    request_id              text,                             -- of the request by which a person moved it last
    vouched                 boolean not null default false,
    by_browser              boolean not null default true,
    share_id                text,
    configuration_id        text,
    secret_generation       integer,
    ended                   text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create index connect_flows_by_age on connect_flows (erase_at);
create index connect_flows_by_configuration on connect_flows (configuration_id) where configuration_id is not null;
create index connect_flows_by_share on connect_flows (share_id) where share_id is not null;
create index connect_flows_due on connect_flows (due_at) where due_at is not null;
create index connect_flows_of_application on connect_flows (application_id, id);
create index connect_flows_open on connect_flows (application_id) where due_at is not null;

-- The keys that sign Domain Connect requests: one signs; during a rotation there is the next one too.
create table domain_connect_keys (
    label                   text primary key,                 -- DNS label that the public key is published at
    number                  integer not null unique,          -- never given twice: the newest key stays
    private_key             bytea not null,                   -- envelope
    signs                   boolean not null
);
create unique index domain_connect_keys_signing on domain_connect_keys (signs) where signs;

-- Which RDAP servers there are, as IANA last published it: one row, which monitors refresh daily.
create table rdap_bootstrap (
    is_only                 boolean primary key default true check (is_only),
    source                  text not null default '',
    content                 bytea,
    fetched_at              timestamptz,
    attempted_at            timestamptz
);

-- Events and webhooks -------------------------------------------------------------------------------------------------

-- What happened. Written once, in the transaction that made it happen. Ids sort by time, so that lists page by them.
create table events (
    id                      text primary key default
        'evt_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
        || left(replace(gen_random_uuid()::text, '-', ''), 20),
    application_id          text not null references applications on delete cascade,
    type                    text not null,
    domain                  text,                             -- none: it is about the application itself
    subdomain               text,
    sequence                bigint,
    fields                  json not null,                    -- the payload but for the columns; json keeps their order
    created_at              timestamptz not null default now(),
    request_id              text
) with (autovacuum_vacuum_scale_factor = 0.02);
create index events_by_age on events (created_at);
create index events_of_application on events (application_id, id);
create index events_of_domain on events (application_id, domain, id) where domain is not null;
create index events_of_request on events (request_id, id) where request_id is not null;
create index events_of_type on events (application_id, type, id);

-- The last sequence given to an event of a domain. Its row's lock orders the domain's events.
create table event_sequences (
    application_id          text not null references applications on delete cascade,
    domain                  text not null,
    subdomain               text not null default '',         -- empty: the apex
    last                    bigint not null default 1,
    review_at               timestamptz not null default now() + '30 days',
    primary key (application_id, domain, subdomain)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index event_sequences_by_review on event_sequences (review_at);

-- Where an application's events go to: its webhook_url, and how that fares. A row stands from the first delivery on.
create table webhook_endpoints (
    application_id          text primary key references applications on delete cascade,
    failing_since           timestamptz,                      -- none: the last attempt succeeded
    last_failed_at          timestamptz,
    warned_at               timestamptz,                      -- said that it will be disabled
    disabled_at             timestamptz,                      -- nothing is sent until it is enabled again
    last_error              text,
    due_at                  timestamptz,                      -- none: nothing to send
    resumes_at              timestamptz,                      -- it rests until then
    failures                integer not null default 0,       -- in a row
    answered_at             timestamptz,                      -- none: not yet
    is_slow                 boolean not null default false    -- the latest attempt failed or took long
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create index webhook_endpoints_quick
    on webhook_endpoints (due_at) where due_at is not null and disabled_at is null and not is_slow;
create index webhook_endpoints_slow
    on webhook_endpoints (due_at) where due_at is not null and disabled_at is null and is_slow;

-- An event on its way to its webhook. Claimed: see common.claims.
create table deliveries (
    event_id                text primary key references events on delete cascade,
    application_id          text not null references applications on delete cascade,
    status                  text not null default 'pending'
        check (status in ('pending', 'delivered', 'failed', 'superseded')),
    superseded_by           text,                             -- the event that made this one old news
    due_at                  timestamptz,                      -- none: settled
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,       -- claims
    failures                integer not null default 0,       -- the place in the schedule of retries
    last_error              text,
    log                     json not null default '[]',  -- the latest attempts, oldest first: {at, status, error}
    settled_at              timestamptz,
    -- of the request that last asked for it: the event's, or a replay's
    request_id              text,
    check ((status = 'pending') = (due_at is not null)),
    constraint deliveries_check1 check ((status = 'pending') = (settled_at is null))
) with (autovacuum_vacuum_scale_factor = 0.02);
create index deliveries_by_status on deliveries (application_id, status, event_id);
create index deliveries_due on deliveries (application_id, due_at) where status = 'pending';
create index deliveries_of_application on deliveries (application_id, event_id);
create index deliveries_under_way on deliveries (application_id) where lease_until is not null;

create function wake_listeners(channel text) returns void language sql as $$
    select pg_notify(channel, '') where pg_notification_queue_usage() < 0.5
$$;

-- A delivery becomes claimable with this transaction. The lock comes first: what is read after it, no claim can still
-- move (common.db.deliveries.claim).
create function wake_endpoint(of_application text) returns void language plpgsql as $$
begin
    perform from webhook_endpoints where application_id = of_application for key share;
    update webhook_endpoints set due_at = greatest(clock_timestamp(), resumes_at)
        where application_id = of_application
            and (due_at is null or due_at > greatest(clock_timestamp(), resumes_at));
end
$$;

-- A trigger makes added rows due, whichever version of a role adds them.
create function wake_endpoints() returns trigger language plpgsql as $$
declare
    woken text;
begin
    for woken in select distinct application_id from added order by application_id loop
        insert into webhook_endpoints (application_id) values (woken) on conflict do nothing;
        perform wake_endpoint(woken);
    end loop;
    return null;
end
$$;

create trigger wake_endpoints after insert on deliveries referencing new table as added
    for each statement execute function wake_endpoints();

-- Batches -------------------------------------------------------------------------------------------------------------

-- A bulk request: accepted with its items in one transaction, worked off item by item. Claimed: see common.claims.
create table batches (
    id                      text primary key,                 -- the request_id
    application_id          text not null references applications,
    kind                    text not null check (kind in ('create', 'delete')),
    number                  bigint generated always as identity,  -- an application's batches run in this order
    submitted_at            timestamptz not null default clock_timestamp(),
    due_at                  timestamptz,                      -- none: every item has its outcome
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    failures                integer not null default 0,       -- for reasons of ours, since an item was done last
    last_error              text,
    request_id              text
) with (autovacuum_vacuum_scale_factor = 0.02);
create index batches_by_age on batches (submitted_at);
create index batches_due on batches (due_at) where due_at is not null;
create index batches_of_application on batches (application_id);
create index batches_open on batches (application_id, number) where due_at is not null;

create table batch_items (
    batch_id                text not null references batches on delete cascade,
    number                  integer not null,                 -- as sent, from 0
    domain                  text,                             -- normalised, or as sent if it is no name
    subdomain               text,
    request                 jsonb not null,                   -- what is to be done, parsed; {} if it never will be
    outcome                 text check (outcome in ('succeeded', 'failed')),  -- none: not done yet
    reason                  text,                             -- why it failed
    primary key (batch_id, number)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Edges ---------------------------------------------------------------------------------------------------------------

-- Edges that serve. Not routed: writing here moves no version.
create table edge_nodes (
    node_id                 text not null,
    feed_identity           text not null,
    version                 bigint not null,
    lease_until             timestamptz not null,
    host                    text not null default '',
    state                   text not null default 'serving',
    reason                  text,
    failing_origins         jsonb not null default '[]',
    login                   text not null default session_user,
    software_version        text,
    held_copy_at            timestamptz,                      -- since when a copy waits for the operator
    failed_upgrade_at       timestamptz,                      -- null once an upgrade has succeeded
    failed_upgrade_reason   text,
    requests_last_minute    bigint,
    failed_last_minute      bigint,                           -- of these, answered with a status from 500 on
    unusable_certificates   integer not null default 0,
    unusable_example        text,                             -- the domain of one of them
    holder                  text,
    shares_id_of            text,
    primary key (node_id, login)
);

-- `of_failing`: null leaves what was reported before.
create function report_lease(
    of_node text, of_identity text, of_version bigint, seconds double precision,
    of_state text, of_reason text, of_host text, of_failing jsonb
)
    returns void language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
declare
    until timestamptz := clock_timestamp() + make_interval(secs => least(seconds, 60));
    reason_shown text := left(regexp_replace(of_reason, '[[:cntrl:]]', ' ', 'g'), 1000);
    host_shown text := left(regexp_replace(of_host, '[[:cntrl:]]', ' ', 'g'), 255);
begin
    if of_node !~ '^[[:print:]]{1,100}$' or of_state not in ('serving', 'held', 'stuck', 'unusable')
        or octet_length(of_identity) > 500 or octet_length(of_failing::text) > 100000
        or jsonb_typeof(of_failing) <> 'array' then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    update edge_nodes set feed_identity = of_identity, version = of_version, lease_until = until, state = of_state,
        reason = reason_shown, host = host_shown, failing_origins = coalesce(of_failing, failing_origins)
        where node_id = of_node and login = session_user;
    if found then
        return;
    end if;
    if (select count(*) from edge_nodes where login = session_user) >= 1000 then
        raise exception 'too many edges under the login %', session_user using errcode = 'check_violation';
    end if;
    insert into edge_nodes (node_id, login, feed_identity, version, lease_until, state, reason, host, failing_origins)
        values (of_node, session_user, of_identity, of_version, until, of_state, reason_shown, host_shown,
            coalesce(of_failing, '[]'));
end
$$;

-- Whether this lease is the holder's, or does not exist yet; with `takes` it becomes so. Belongs to a login as for
-- `report_lease`.
create function hold_edge_lease(of_node text, of_holder text, takes boolean, of_shares_id_of text)
    returns boolean language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
begin
    if of_holder !~ '^[[:print:]]{1,100}$' or of_shares_id_of !~ '^[[:print:]]{1,100}$' then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    if not takes and exists
        (select from edge_nodes where node_id = of_node and login = session_user and holder <> of_holder) then
        return false;
    end if;
    update edge_nodes set holder = of_holder, shares_id_of = of_shares_id_of
        where node_id = of_node and login = session_user;
    return true;
end
$$;

create function end_lease(of_node text)
    returns void language sql security definer set search_path to 'public', 'pg_temp' as $$
    delete from edge_nodes where node_id = of_node and login = session_user
$$;

-- Ends the lease unless it is another holder's.
create function end_edge_lease(of_node text, of_holder text)
    returns void language sql security definer set search_path to 'public', 'pg_temp' as $$
    delete from edge_nodes where node_id = of_node and login = session_user and coalesce(holder = of_holder, true)
$$;

-- Describes an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function describe_edge(
    of_node text, of_software_version text, of_held_copy_at timestamptz,
    of_failed_upgrade_at timestamptz, of_failed_upgrade_reason text
)
    returns void language sql security definer set search_path to 'public', 'pg_temp' as $$
    update edge_nodes set software_version = left(regexp_replace(of_software_version, '[[:cntrl:]]', ' ', 'g'), 100),
        held_copy_at = of_held_copy_at,
        failed_upgrade_at = of_failed_upgrade_at,
        failed_upgrade_reason = left(regexp_replace(of_failed_upgrade_reason, '[[:cntrl:]]', ' ', 'g'), 1000)
        where node_id = of_node and login = session_user
$$;

-- Of an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function report_edge_certificates(of_node text, of_unusable integer, of_example text)
    returns void language sql security definer set search_path to 'public', 'pg_temp' as $$
    update edge_nodes set unusable_certificates = greatest(of_unusable, 0),
        unusable_example = left(regexp_replace(of_example, '[[:cntrl:]]', ' ', 'g'), 255)
        where node_id = of_node and login = session_user
$$;

-- Of an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function report_edge_traffic(of_node text, of_requests bigint, of_failed bigint)
    returns void language sql security definer set search_path to 'public', 'pg_temp' as $$
    update edge_nodes set requests_last_minute = greatest(of_requests, 0), failed_last_minute = greatest(of_failed, 0)
        where node_id = of_node and login = session_user
$$;

create table traffic (
    application_id          text not null,
    domain                  text not null,
    minutes                 smallint not null,
    at                      timestamptz not null,             -- the start of the interval
    login                   text not null,
    counts                  bigint[] not null,
    erase_at                timestamptz not null,
    primary key (application_id, domain, minutes, at, login)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index traffic_erase_at on traffic (erase_at);

-- One row for each interval in which a login reported: how many rows of `traffic` it has there. Reports of one login
-- wait for each other here, so that no number of sessions exceeds the bound.
create table traffic_reports (
    login                   text not null,
    minutes                 smallint not null,
    at                      timestamptz not null,
    rows                    integer not null default 0,
    erase_at                timestamptz not null,
    primary key (login, minutes, at)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index traffic_reports_erase_at on traffic_reports (erase_at);

-- Adds a report of an edge to what its login has reported for the interval. Only what is true of the present can be
-- said: the time is one of the last hour, the domain is enrolled for the application, and a login has at most 2,000
-- rows
-- in 5 minutes and 4,000 in an hour, at most one report's worth of numbers in each.
create function report_traffic(of_at timestamptz, of_entries jsonb)
    returns void language plpgsql security definer set search_path to 'public', 'pg_temp' set lock_timeout to '1s' as $$
declare
    figures constant integer := 20;
    interval_at timestamptz;
    used integer;
    span record;
begin
    if jsonb_typeof(of_entries) <> 'array' or jsonb_array_length(of_entries) > 1000
        or octet_length(of_entries::text) > 1000000 then
        raise exception 'not a report of traffic' using errcode = 'check_violation';
    end if;
    if of_at not between now() - interval '65 minutes' and now() then   -- an edge whose clock is wrong
        of_at := now();
    end if;
    for span in select * from (values (5, 2000, interval '2 days'), (60, 4000, interval '30 days'))
        as spans(minutes, most, kept) loop
        interval_at := date_bin(make_interval(mins => span.minutes), of_at, 'epoch');
        insert into traffic_reports as r (login, minutes, at, erase_at)
            values (session_user, span.minutes, interval_at, interval_at + span.kept)
            on conflict (login, minutes, at) do update set rows = r.rows returning rows into used;
        with entries as materialized (
            select e ->> 0 as application_id, e ->> 1 as domain, place,
                array(select least(greatest(n::bigint, 0), 1000000000000)
                    from jsonb_array_elements_text(e -> 2) with ordinality as each(n, place) order by place) as counts
            from jsonb_array_elements(of_entries) with ordinality as given(e, place)
        ), known as materialized (
            select e.*, exists (select from traffic t where t.application_id = e.application_id
                and t.domain = e.domain and t.minutes = span.minutes and t.at = interval_at
                and t.login = session_user) as is_there
            from entries e
            where cardinality(counts) = figures and case when e.domain = ''
                then exists (select from applications a where a.id = e.application_id)
                else exists (select from domains d
                    where d.domain = e.domain and d.application_id = e.application_id) end
        ), updated as (
            update traffic t set counts = array(
                select mine + theirs from unnest(t.counts, k.counts) with ordinality as each(mine, theirs, place)
                order by place)
            from known k where k.is_there and t.application_id = k.application_id and t.domain = k.domain
                and t.minutes = span.minutes and t.at = interval_at and t.login = session_user
        ), inserted as (
            insert into traffic (application_id, domain, minutes, at, login, counts, erase_at)
            select application_id, domain, span.minutes, interval_at, session_user, counts, interval_at + span.kept
            from known where not is_there order by place limit greatest(span.most - used, 0)
            returning 1
        )
        update traffic_reports r set rows = r.rows + (select count(*) from inserted)
            where r.login = session_user and r.minutes = span.minutes and r.at = interval_at;
    end loop;
end
$$;

-- The change feed -----------------------------------------------------------------------------------------------------

-- The feed is in shards, so that commits which publish do not wait for each other. A commit holds its lock on the feed
-- until it is on disk, so one row would allow one commit for each flush. A transaction counts its changes in one of 64
-- rows, by its id, so transactions that run at the same time take different ones, and Postgres flushes their commits
-- together. Within a shard versions become visible in order.
--
-- Why a reader misses nothing: its position is one version for each shard, read in one snapshot. The shard's lock is
-- held through commit, so all changes of a shard up to that version are in the snapshot, and later ones have a higher
-- version. Snapshots of one history are ordered by what they contain; every change adds to the sum of the versions. So
-- the sum, `feed.version`, orders them too: that is the version edges report.
--
-- Why transactions neither deadlock nor overwrite each other: each takes one shard's lock, and two that run at the same
-- time never publish the same key. A routed row is the only one of its key (by a primary key, or a unique index over
-- the rows that are routed), so the second transaction waits for the first one's row before it gets here.
--
-- `checksum` is the XOR of the digests of all live entries: a replica that keeps the same sum over what it stores
-- proves, at each catch-up, that it equals this database.
create table feed_shards (
    shard                   smallint primary key,
    version                 bigint not null default 0,
    checksum                bigint not null default 0,        -- XOR of what its transactions changed
    purged_version          bigint not null default 0,        -- tombstones up to here may be gone
    published_by            xid8                              -- the transaction that published last
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- All of it. `positions` and `purged` are in the order of the shards.
create view feed as
    select sum(version)::bigint as version, bit_xor(checksum) as checksum,
        array_agg(version order by shard) as positions, array_agg(purged_version order by shard) as purged,
        sum(purged_version)::bigint as purged_version
    from feed_shards;

-- What has been published last under each key; a tombstone for what was deleted.
create table changes (
    kind                    text not null,
    key                     text not null,
    version                 bigint not null,
    deleted                 boolean not null,
    digest                  bigint not null,                  -- of kind, key and content; 0 when deleted
    changed_at              timestamptz not null default clock_timestamp(),
    shard                   smallint not null default 0,
    request_id              text,                             -- of the request that published the present version
    primary key (kind, key)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index changes_by_version on changes (shard, version);
create index tombstones on changes (changed_at) where deleted;

-- The new field is in the contents of the applications that have set it. The contents of all others stay as they
-- are, and
-- so do their digests: writing them anew would keep every application locked for as long as that takes.
create function routed_content(of_row applications) returns jsonb language sql immutable as $$
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
        || case when of_row.buffer_uploads_bytes is null then '{}'
            else jsonb_build_object('buffer_uploads_bytes', of_row.buffer_uploads_bytes) end
$$;

-- An origin that was not set with full rights gets neither X-Service-Auth nor signatures.
create function routed_content(of_row domains) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'product', of_row.product, 'application_id', of_row.application_id,
        'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'redirect_to', of_row.redirect_to)
        || case when of_row.origin_vouched then '{}'::jsonb else '{"origin_vouched": false}'::jsonb end
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

create function routed_content(of_row error_pages) returns jsonb language sql immutable as $$
    select jsonb_build_object('application_id', of_row.application_id, 'html', of_row.html)
$$;

create function routed_content(of_row acme_key) returns jsonb language sql immutable as $$
    select jsonb_build_object('thumbprint', of_row.thumbprint)
$$;

create function routed_content(of_row edge_policies) returns jsonb language sql immutable as $$
    select jsonb_build_object('scope', of_row.scope, 'subject', of_row.subject,
        'answer', jsonb_build_object('status', of_row.status, 'reason', of_row.reason))
$$;

-- All that edges know, for a full copy. Kinds and keys: application <id>; route <product>/<domain>;
-- certificate <domain>; order <domain>; error_page <application id>; acme_key current;
-- policy <scope>/<domain or application id>.
create view feed_entries as
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

-- One entry of it, found by the tables' own keys.
create function feed_content(of_kind text, of_key text)
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
    end case;
end
$$;

create function feed_digest(of_kind text, of_key text, content jsonb) returns bigint language sql immutable as $$
    select ('x' || left(encode(sha256(convert_to(
        of_kind || chr(10) || of_key || chr(10) || content::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

create function feed_key(of_kind text, routed jsonb) returns text language sql immutable as $$
    select case of_kind
        when 'application' then routed ->> 'id'
        when 'route' then (routed ->> 'product') || '/' || (routed ->> 'domain')
        when 'error_page' then routed ->> 'application_id'
        when 'acme_key' then 'current'
        when 'policy' then (routed ->> 'scope') || '/' || (routed ->> 'subject')
        else routed ->> 'domain'
    end
$$;

-- The shard of this transaction. Neighbours in time have neighbouring ids.
create function feed_shard() returns smallint language sql as $$
    select (pg_current_xact_id()::text::bigint % 64)::smallint
$$;

-- Bring the feed's entry for one key in line with the row as it now is. Entries that stay the same cost no version.
-- The caller's transaction has written the key's row, so no other can change what is read here.
-- The setting `frontage.request_id` is local to the transaction (common.db.audit, common.db.feed).
create function record_change(of_kind text, of_key text)
    returns void language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
declare
    own_shard smallint := feed_shard();
    own_version bigint;
    content jsonb := feed_content(of_kind, of_key);
    new_digest bigint := case when content is null then 0 else feed_digest(of_kind, of_key, content) end;
    old_digest bigint;
    of_request text;
begin
    select digest into old_digest from changes where kind = of_kind and key = of_key;
    if new_digest = coalesce(old_digest, 0) then
        return;
    end if;
    of_request := nullif(current_setting('frontage.request_id', true), '');
    -- `published_by` alone would take a transaction of a server that this table was restored from for this one.
    update feed_shards set
        version = version + case
            when published_by = pg_current_xact_id() and xmin = pg_current_xact_id()::xid then 0 else 1 end,
        published_by = pg_current_xact_id(),
        checksum = checksum # coalesce(old_digest, 0) # new_digest
        where shard = own_shard returning version into strict own_version;
    update changes set shard = own_shard, version = own_version, deleted = content is null, digest = new_digest,
        changed_at = clock_timestamp(), request_id = of_request where kind = of_kind and key = of_key;
    if not found then  -- new, or its tombstone has been purged since
        insert into changes (kind, key, shard, version, deleted, digest, request_id)
            values (of_kind, of_key, own_shard, own_version, content is null, new_digest, of_request);
    end if;
    -- Commits that notify wait for each other, too. A commit that runs beside one that notifies does not notify: edges
    -- read the feed again soon after a change, and a program that waits for them notifies again (common.liveness).
    if pg_try_advisory_xact_lock(hashtextextended('frontage_changes', 0)) then
        perform wake_listeners('frontage_changes');  -- the same words twice in one transaction are sent once
    end if;
end
$$;

-- Deferred to the end of the transaction; the argument is the kind. A renamed key tombstones the old one. Changes of
-- what edges need not know (a claim, an attempt, a certificate that was released long ago) end here, before any lock.
create function follow_change()
    returns trigger language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
declare
    old_content jsonb := case when tg_op <> 'INSERT' then routed_content(old) end;
    new_content jsonb := case when tg_op <> 'DELETE' then routed_content(new) end;
    old_key text;
    new_key text;
begin
    if old_content is not distinct from new_content then
        return null;
    end if;
    old_key := feed_key(tg_argv[0], old_content);
    new_key := feed_key(tg_argv[0], new_content);
    if new_content is not null then
        perform record_change(tg_argv[0], new_key);
    end if;
    if old_content is not null and old_key is distinct from new_key then
        perform record_change(tg_argv[0], old_key);
    end if;
    return null;
end
$$;

-- TRUNCATE would pass the row triggers by.
create function refuse_truncate() returns trigger language plpgsql as $$
begin
    raise exception 'edges follow %: use DELETE', tg_table_name;
end
$$;

-- Edges follow these tables.
do $$
declare
    routed record;
begin
    for routed in
        select * from (values
            ('applications', 'application'), ('domains', 'route'), ('certificates', 'certificate'),
            ('orders', 'order'), ('error_pages', 'error_page'), ('acme_key', 'acme_key'), ('edge_policies', 'policy')
        ) as r (name, kind)
    loop
        execute format(
            'create constraint trigger follow after insert or update or delete on %I'
            ' deferrable initially deferred for each row execute function follow_change(%L)', routed.name, routed.kind);
        execute format(
            'create trigger keep before truncate on %I execute function refuse_truncate()', routed.name);
    end loop;
end
$$;

-- Locks and canary ----------------------------------------------------------------------------------------------------

-- What transactions lock by name (common.db.locks).
create table lock_slots (
    scope                   text not null,
    slot                    integer not null,
    primary key (scope, slot)
);

create table canary (
    key_id                  text primary key,
    envelope                bytea not null,
    retired_at              timestamptz                       -- a master key that nothing is sealed under any more
);

-- First rows ----------------------------------------------------------------------------------------------------------

insert into feed_shards (shard) select n from generate_series(0, 63) n;
insert into lock_slots
    select 'domain', n from generate_series(0, 4095) n
    union all
    select 'ca_ledger', n from generate_series(0, 15) n
    union all
    select scope, 0 from unnest(array['roles', 'redirects', 'moves']) scope;
insert into monitor_health (is_healthy, reason) values (false, 'no monitor has looked yet');
insert into mass_guard default values;
insert into rdap_bootstrap default values;

-- Rights --------------------------------------------------------------------------------------------------------------

-- Any login could put a trigger's function on a temporary table of its own, and there it ran with the rights of the
-- schema's owner on types, and by casts, that the login had made. Triggers that exist need no right to fire. What runs
-- with the owner's rights is given to each role by `common.db.roles`.
revoke execute on function
    describe_edge, end_edge_lease, end_lease, follow_change, hold_edge_lease,
    record_change, report_edge_certificates, report_edge_traffic, report_lease, report_traffic
    from public;
