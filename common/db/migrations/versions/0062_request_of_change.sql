-- Bring the feed's entry for one key in line with the row as it now is. Entries that stay the same cost no version.
-- The caller's transaction has written the key's row, so no other can change what is read here.
-- The setting `frontage.request_id` is local to the transaction (common.db.audit, common.db.feed).
create or replace function record_change(of_kind text, of_key text) returns void language plpgsql
    security definer set search_path = public, pg_temp as $$
declare
    own_shard smallint := feed_shard();
    own_version bigint;
    content jsonb := feed_content(of_kind, of_key);
    new_digest bigint := case when content is null then 0 else feed_digest(of_kind, of_key, content) end;
    old_digest bigint;
    of_request text;
begin
    select digest into old_digest from changes where kind = of_kind and key = of_key;
    if new_digest = coalesce(old_digest, 0) then
        return;
    end if;
    of_request := nullif(current_setting('frontage.request_id', true), '');
    -- `published_by` alone would take a transaction of a server that this table was restored from for this one.
    update feed_shards set
        version = version + case
            when published_by = pg_current_xact_id() and xmin = pg_current_xact_id()::xid then 0 else 1 end,
        published_by = pg_current_xact_id(),
        checksum = checksum # coalesce(old_digest, 0) # new_digest
        where shard = own_shard returning version into strict own_version;
    update changes set shard = own_shard, version = own_version, deleted = content is null, digest = new_digest,
        changed_at = clock_timestamp(), request_id = of_request where kind = of_kind and key = of_key;
    if not found then  -- new, or its tombstone has been purged since
        insert into changes (kind, key, shard, version, deleted, digest, request_id)
            values (of_kind, of_key, own_shard, own_version, content is null, new_digest, of_request);
    end if;
    -- Commits that notify wait for each other, too. A commit that runs beside one that notifies does not notify: edges
    -- read the feed again soon after a change, and a program that waits for them notifies again (common.liveness).
    if pg_try_advisory_xact_lock(hashtextextended('frontage_changes', 0)) then
        perform wake_listeners('frontage_changes');  -- the same words twice in one transaction are sent once
    end if;
end $$;
