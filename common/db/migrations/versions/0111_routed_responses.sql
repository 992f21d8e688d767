-- Edges get what a domain's responses carry. The contents of domains that state nothing stay as they are.
create or replace function routed_content(of_row domains) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'product', of_row.product, 'application_id', of_row.application_id,
        'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'redirect_to', of_row.redirect_to)
        || case when of_row.origin_vouched then '{}'::jsonb else '{"origin_vouched": false}'::jsonb end
        || case when of_row.metadata is null then '{}'::jsonb
            else jsonb_build_object('metadata', of_row.metadata) end
        || case when of_row.visitors is null then '{}'::jsonb
            else jsonb_build_object('visitors', of_row.visitors) end
        || case when of_row.response_policy is null then '{}'::jsonb
            else jsonb_build_object('response_policy', of_row.response_policy) end
$$;
