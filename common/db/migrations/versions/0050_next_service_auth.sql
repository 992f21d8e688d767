-- During a rotation of X-Service-Auth: the value that edges send once the rotation is finished. Edges do not read it.
alter table applications add column next_service_auth bytea; -- envelope
