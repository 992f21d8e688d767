-- Whether a preparation waits for the DNS to lead here, to be enrolled as any other domain then; else it waits for the
-- delegation of its challenge, to be served before.
alter table preparations add column awaits_dns boolean not null default false;
