-- Any login could put this function on a temporary table of its own, as a trigger, and there it ran with the rights of
-- the schema's owner on types, and by casts, that the login had made. Triggers that exist need no right to fire.

revoke execute on function follow_change() from public;
