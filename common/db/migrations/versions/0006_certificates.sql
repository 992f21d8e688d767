-- The life of certificates: the CA's limits as a ledger, renewal, revocation.

alter table orders
    -- What the order is for: a domain's first certificate; the renewal that is due by itself, which every order waits for
    -- once its certificate is live; a requested renewal; a certificate in place of one that is revoked.
    add column kind             text not null default 'new' check (kind in ('new', 'renewal', 'manual', 'replacement')),
    add column renew_at         timestamptz,            -- chosen once, within the issuer's window where it has one
    add column failed_at        timestamptz,            -- failing since: its owner has been notified
    -- The order at the CA that this run placed: how another monitor carries it on.
    add column placed_issuer    text,
    add column placed_url       text,
    add column placed_at        timestamptz,
    add column placed_key       bytea,                  -- envelope: what the certificate will be for
    add check ((placed_url is null) = (placed_issuer is null and placed_at is null and placed_key is null));

update orders set kind = 'renewal', renew_at = due_at where state = 'issued';

alter table certificates
    add column revoke_reason    smallint;               -- RFC 5280 §5.3.1; such a one is never adopted

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
    is_exempt               boolean not null default false, -- a renewal the CA suggested: it does not count
    order_url               text,
    taken_at                timestamptz not null default clock_timestamp()
);
create index ca_ledger_of_account on ca_ledger (issuer, kind, taken_at);
create index ca_ledger_of_registered_domain on ca_ledger (issuer, registered_domain, taken_at);
create index ca_ledger_of_domain on ca_ledger (issuer, domain, taken_at);
create index ca_ledger_of_order on ca_ledger (order_url) where order_url is not null;
create index ca_ledger_by_age on ca_ledger (taken_at);

-- Certificates to be revoked. Claimed: see common.claims. Not tied to the certificate's row, which is replaced meanwhile.
create table revocations (
    id                      bigint generated always as identity primary key,
    domain                  text not null,
    application_id          text not null,
    issuer                  text not null,
    chain                   text not null,                  -- PEM, leaf first
    reason                  smallint not null,              -- RFC 5280 §5.3.1
    requested_at            timestamptz not null default now(),
    due_at                  timestamptz,                    -- none: done
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text,
    revoked_at              timestamptz
);
create index revocations_due on revocations (due_at) where due_at is not null;
create index revocations_of_domain on revocations (domain) where due_at is not null;

alter table canary
    add column retired_at       timestamptz;            -- a master key that nothing is sealed under any more
