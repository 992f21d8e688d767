-- A key may return while its tombstone is purged (`common.db.feed.purge_tombstones`). The purge locks the shards, so the
-- returning transaction waits for it after it has seen the tombstone, and then finds no row to update: it inserts one.

create or replace function record_change(of_kind text, of_key text) returns void language plpgsql
    security definer set search_path = public, pg_temp as $$
declare
    own_shard smallint := feed_shard();
    own_version bigint;
    content jsonb := feed_content(of_kind, of_key);
    new_digest bigint := case when content is null then 0 else feed_digest(of_kind, of_key, content) end;
    old_digest bigint;
begin
    select digest into old_digest from changes where kind = of_kind and key = of_key;
    if new_digest = coalesce(old_digest, 0) then
        return;
    end if;
    update feed_shards set version = version + 1, checksum = checksum # coalesce(old_digest, 0) # new_digest
        where shard = own_shard returning version into strict own_version;
    update changes set shard = own_shard, version = own_version, deleted = content is null, digest = new_digest,
        changed_at = clock_timestamp() where kind = of_kind and key = of_key;
    if not found then
        insert into changes (kind, key, shard, version, deleted, digest)
            values (of_kind, of_key, own_shard, own_version, content is null, new_digest);
    end if;
    -- Commits that notify wait for each other, too. One that runs beside another's leaves it to that one to wake the
    -- edges: they look again soon after a change, and who waits for them notifies again (common.liveness).
    if pg_try_advisory_xact_lock(hashtextextended('frontage_changes', 0)) then
        perform pg_notify('frontage_changes', '');  -- the same words twice in one transaction are sent once
    end if;
end $$;
