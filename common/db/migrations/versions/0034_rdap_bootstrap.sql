-- Which RDAP servers there are, as IANA last published it: one row, which monitors refresh daily.
create table rdap_bootstrap (
    is_only       boolean primary key default true check (is_only),
    source        text not null default '',
    content       bytea,
    fetched_at    timestamptz,
    attempted_at  timestamptz
);
insert into rdap_bootstrap default values;
