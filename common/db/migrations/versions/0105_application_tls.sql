-- The oldest version of TLS that edges speak at those of the application's domains that state none themselves. The
-- contents of applications that leave it at 1.2 stay as they are, and so do their digests.
alter table applications add column minimum_tls text not null default '1.2' check (minimum_tls in ('1.2', '1.3'));

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
        || case when of_row.minimum_tls = '1.2' then '{}'::jsonb
            else jsonb_build_object('minimum_tls', of_row.minimum_tls) end
$$;
