-- A domain and its wildcard have one challenge name, and so one label. `challenge_values` are those of both orders;
-- `wildcard_values` are those of them that are the wildcard's.
alter table acme_delegations add column wildcard_values text[] not null default '{}';
