-- Whose order it was: of the account's orders, each application has a share (common.db.ca_ledger).
alter table ca_ledger add column application_id text;       -- none: from before

-- When renewals were asked for, the latest last: an application may do so some times a day.
alter table orders add column renewals_requested_at timestamptz[] not null default '{}';

-- When an application's deliveries are due: one row an application, so that the list of what is due is as long as there
-- are endpoints to serve. Quick and slow endpoints have lists of their own (common.db.webhook_endpoints).
alter table webhook_endpoints
    add column due_at       timestamptz,                    -- none: nothing to send
    add column resumes_at   timestamptz,                    -- it rests until then
    add column failures     integer not null default 0,     -- in a row
    add column answered_at  timestamptz,                    -- none: not yet
    add column is_slow      boolean not null default false; -- the latest attempt failed or took long
alter table webhook_endpoints set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
update webhook_endpoints set due_at = case when disabled_at is null then now() end,
    answered_at = case when failing_since is null then now() end, is_slow = failing_since is not null;

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
create trigger wake_endpoints after insert on deliveries
    referencing new table as added for each statement execute function wake_endpoints();
