-- Names are found by any part of them, without an extension: every three characters that follow each other are indexed.

-- As numbers, since names are ASCII; a name begins with a ^ of ours, so that its first two characters are found too.
create function name_grams(name text) returns integer[] language sql immutable strict parallel safe as $$
    select array_agg(distinct (ascii(substr('^' || name, place, 1)) * 128 + ascii(substr('^' || name, place + 1, 1))) * 128
        + ascii(substr('^' || name, place + 2, 1)))
    from generate_series(1, length(name) - 1) place
$$;

create function monitored_name(domain text, subdomain text) returns text language sql immutable parallel safe as $$
    select case when subdomain is null then domain else subdomain || '.' || domain end
$$;
