-- When a domain's or a monitored domain's settings were last changed by a call. None: not since it was added.

alter table domains add column updated_at timestamptz;
alter table monitored_domains add column updated_at timestamptz;
