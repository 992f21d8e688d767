-- Passkeys: public keys of authenticators, with which users sign in beside their password.
create table passkeys (
    credential_id           bytea primary key,
    user_id                 text not null references users on delete cascade,
    public_key              bytea not null,                 -- COSE_Key (RFC 9052); not a secret
    sign_count              bigint not null,                -- of the last assertion; 0 where the authenticator has none
    name                    text not null,
    created_at              timestamptz not null default now(),
    used_at                 timestamptz
);
create index passkeys_of_user on passkeys (user_id, created_at);

-- Challenges that were answered: none is accepted twice.
create table answered_challenges (
    challenge_hash          bytea primary key,              -- SHA-256
    answered_at             timestamptz not null default now()
);
create index answered_challenges_by_age on answered_challenges (answered_at);

-- When the user last proved to be there, after signing in.
alter table sessions add column confirmed_at timestamptz;
