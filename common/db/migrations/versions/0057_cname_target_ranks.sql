-- Since when the target is the application's. None: since the application was made.
alter table applications
    add column cname_target_set_at timestamptz,
    add column secure_cname_target_set_at timestamptz;

-- Until when the name was a cname target of the application; none: a domain that it held. `released_at` of a former
-- target is infinity as long as the application is there.
alter table former_holders add column target_until timestamptz;
