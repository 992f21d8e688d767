-- Since when no order may begin with the key so far: each monitor waits for the orders that run, from the same moment.
alter table acme_key_rollover add column made_at timestamptz;
update acme_key_rollover set made_at = now() where thumbprint is not null;
