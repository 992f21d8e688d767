-- Accounts of an OpenID Connect provider, each bound to the user that it signs in.
create table oidc_subjects (
    issuer                  text not null,
    subject                 text not null,
    user_id                 text not null references users on delete cascade,
    bound_at                timestamptz not null default now(),
    primary key (issuer, subject),
    unique (user_id, issuer)
);
