-- Room for the shard that a change was counted in.

alter table changes add column shard smallint not null default 0;
