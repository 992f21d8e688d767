-- The feed is written, and what edges must know of a row is read, with the rights of the schema's owner: a role needs
-- none on the feed to change what edges follow, and an edge none on the tables (common.db.roles).

alter function record_change(text, text) security definer set search_path = public, pg_temp;
alter function feed_content(text, text) security definer set search_path = public, pg_temp;
revoke execute on function record_change(text, text) from public;
alter function follow_change() security definer set search_path = public, pg_temp;
