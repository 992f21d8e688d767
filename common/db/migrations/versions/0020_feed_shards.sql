-- The change feed in shards: commits that publish no longer wait for each other.
--
-- A commit holds its lock on the feed until it is on disk, so one row allowed one commit for each flush. A transaction
-- now counts its changes in one of 64 rows, by its id, so transactions that run at the same time take different ones,
-- and Postgres flushes their commits together. Within a shard versions become visible in order, as before.
--
-- Why a reader misses nothing: its position is one version for each shard, read in one snapshot. The shard's lock is
-- held through commit, so all changes of a shard up to that version are in the snapshot, and later ones have a higher
-- version. Snapshots of one history are ordered by what they contain; every change adds one to the sum of the versions.
-- So the sum, `feed.version`, orders them too: that is the version edges report.
--
-- Why transactions neither deadlock nor overwrite each other: each takes one shard's lock, and two that run at the same
-- time never publish the same key. A routed row is the only one of its key (by a primary key, or a unique index over the
-- rows that are routed), so the second transaction waits for the first one's row before it gets here.

-- No transaction is to be inside the old functions when the new ones take their place: those that write a routed table
-- end first, others begin afterwards.
lock table applications, domains, certificates, orders, error_pages, acme_key in share row exclusive mode;

create table feed_shards (
    shard                   smallint primary key,
    version                 bigint not null default 0,
    checksum                bigint not null default 0,      -- XOR of what its transactions changed
    purged_version          bigint not null default 0       -- tombstones up to here may be gone
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

insert into feed_shards (shard, version, checksum, purged_version)
    select 0, version, checksum, purged_version from feed union all select n, 0, 0, 0 from generate_series(1, 63) n;
drop table feed;
alter table changes drop constraint changes_version_key;

-- All of it. `positions` and `purged` are in the order of the shards. (`purged_version` is for edges of before, whose
-- position is one number: they copy afresh.)
create view feed as
    select sum(version)::bigint as version, bit_xor(checksum) as checksum,
        array_agg(version order by shard) as positions, array_agg(purged_version order by shard) as purged,
        sum(purged_version)::bigint as purged_version
    from feed_shards;

-- The shard of this transaction. Neighbours in time have neighbouring ids.
create function feed_shard() returns smallint language sql volatile as $$
    select (pg_current_xact_id()::text::bigint % 64)::smallint
$$;

-- Bring the feed's entry for one key in line with the row as it now is. Entries that stay the same cost no version.
-- The caller's transaction has written the key's row, so no other can change what is read here.
create or replace function record_change(of_kind text, of_key text) returns void language plpgsql as $$
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
    if old_digest is null then
        insert into changes (kind, key, shard, version, deleted, digest)
            values (of_kind, of_key, own_shard, own_version, content is null, new_digest);
    else
        update changes set shard = own_shard, version = own_version, deleted = content is null, digest = new_digest,
            changed_at = clock_timestamp() where kind = of_kind and key = of_key;
    end if;
    -- Commits that notify wait for each other, too. One that runs beside another's leaves it to that one to wake the
    -- edges: they look again soon after a change, and who waits for them notifies again (common.liveness).
    if pg_try_advisory_xact_lock(hashtextextended('frontage_changes', 0)) then
        perform pg_notify('frontage_changes', '');  -- the same words twice in one transaction are sent once
    end if;
end $$;

-- Deferred to the end of the transaction; the argument is the kind. A renamed key tombstones the old one. Changes of
-- what edges need not know (a claim, an attempt, a certificate that was released long ago) end here, before any lock.
create or replace function follow_change() returns trigger language plpgsql as $$
declare
    old_content jsonb := case when tg_op <> 'INSERT' then routed_content(old) end;
    new_content jsonb := case when tg_op <> 'DELETE' then routed_content(new) end;
    old_key text;
    new_key text;
begin
    if old_content is not distinct from new_content then
        return null;
    end if;
    old_key := feed_key(tg_argv[0], old_content);
    new_key := feed_key(tg_argv[0], new_content);
    if new_content is not null then
        perform record_change(tg_argv[0], new_key);
    end if;
    if old_content is not null and old_key is distinct from new_key then
        perform record_change(tg_argv[0], old_key);
    end if;
    return null;
end $$;
