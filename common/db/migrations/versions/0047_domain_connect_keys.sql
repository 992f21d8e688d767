-- The keys that sign Domain Connect requests: one signs; during a rotation there is the next one too.
create table domain_connect_keys (
    label           text primary key,               -- DNS label that the public key is published at
    number          integer not null unique,        -- never given twice: the newest key stays
    private_key     bytea not null,                 -- envelope
    signs           boolean not null
);
create unique index domain_connect_keys_signing on domain_connect_keys (signs) where signs;
