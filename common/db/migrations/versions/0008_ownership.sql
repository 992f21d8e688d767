-- Whose a name is: how it was claimed, who held it before, and limits counted per application.

-- Names that an application has given up, or lost: domains, and cname targets. No key on applications: a name outlives
-- the application that held it.
create table former_holders (
    domain                  text not null check (octet_length(domain) <= 253),
    application_id          text not null,
    released_at             timestamptz not null default now(),
    primary key (domain, application_id)
);
create index former_holders_by_age on former_holders (released_at);

-- Not routed: common.ownership.Claim, or operator. None: enrolled before claims were kept.
alter table domains add column claim text;

-- The limit counts for each application. None: a row from before it did.
alter table enrolments add column application_id text;

-- Set while `app delete` takes the application apart, batch by batch: no token of it works any more.
alter table applications add column deleting_at timestamptz;

-- Certificates and orders come and go with their domain, whose row has a key on its application. Keys of their own cost
-- a lock on the application's row with each order, and a scan of the whole table when an application is deleted.
alter table certificates drop constraint certificates_application_id_fkey;
alter table orders drop constraint orders_application_id_fkey;
