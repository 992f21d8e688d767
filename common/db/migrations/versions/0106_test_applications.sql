-- An application for tests: its certificates are the internal authority's, whatever CA issues for others.
alter table applications add column is_test boolean not null default false;
