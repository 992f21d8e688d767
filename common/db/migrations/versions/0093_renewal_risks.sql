-- What the daily rehearsal of a domain's validation found, as `common.db.renewal_risks.Risk`; null where it would pass.
alter table orders add column renewal_risk jsonb;
