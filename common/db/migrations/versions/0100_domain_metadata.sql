-- By which key and text a domain is found, in the order of names: kept by the triggers below. Edges get the notes of
-- a domain, and which of them origins get; the contents of what has none stay as they are, and so do their digests.
create table domain_metadata (
    application_id      text not null,
    product             text not null,
    key                 text not null,
    value               text not null,
    domain              text not null,
    primary key (application_id, product, key, value, domain)
) with (autovacuum_vacuum_scale_factor = 0.02);

create function index_domain_metadata() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        delete from domain_metadata m using jsonb_each_text(old.metadata) each
        where m.application_id = old.application_id and m.product = old.product
            and m.key = each.key and m.value = each.value and m.domain = old.domain;
    end if;
    if tg_op <> 'DELETE' then
        insert into domain_metadata (application_id, product, key, value, domain)
        select new.application_id, new.product, each.key, each.value, new.domain
        from jsonb_each_text(new.metadata) each;
    end if;
    return null;
end
$$;
create trigger index_new_metadata after insert on domains
    for each row when (new.metadata is not null) execute function index_domain_metadata();
create trigger index_changed_metadata after update on domains
    for each row when (old.metadata is distinct from new.metadata
        or new.metadata is not null and (old.domain, old.product, old.application_id)
            is distinct from (new.domain, new.product, new.application_id))
    execute function index_domain_metadata();
create trigger index_removed_metadata after delete on domains
    for each row when (old.metadata is not null) execute function index_domain_metadata();

create or replace function routed_content(of_row domains) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'product', of_row.product, 'application_id', of_row.application_id,
        'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'redirect_to', of_row.redirect_to)
        || case when of_row.origin_vouched then '{}'::jsonb else '{"origin_vouched": false}'::jsonb end
        || case when of_row.metadata is null then '{}'::jsonb
            else jsonb_build_object('metadata', of_row.metadata) end
$$;

create or replace function routed_content(of_row applications) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'id', of_row.id, 'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'service_auth', encode(of_row.service_auth, 'base64'),
        'send_host', of_row.send_host,
        'origin_server_name', of_row.origin_server_name,
        'origin_verify', of_row.origin_verify,
        'signature_key', encode(of_row.signature_key, 'base64'),
        'previous_signature_key', encode(of_row.previous_signature_key, 'base64'),
        'previous_signature_until', extract(epoch from of_row.previous_signature_until),
        'maintenance', of_row.maintenance)
        || case when of_row.buffer_uploads_bytes is null then '{}'
            else jsonb_build_object('buffer_uploads_bytes', of_row.buffer_uploads_bytes) end
        || case when of_row.http2 then '{}'::jsonb else '{"http2": false}'::jsonb end
        || case when of_row.response_policy is null then '{}'::jsonb
            else jsonb_build_object('response_policy', of_row.response_policy) end
        || case when of_row.metadata_fields = '{}' then '{}'::jsonb
            else jsonb_build_object('metadata_fields', of_row.metadata_fields) end
$$;
