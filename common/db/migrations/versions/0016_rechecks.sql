-- An order whose domain's DNS is to be looked at again at once.

alter table orders
    add column recheck_requested_at timestamptz,            -- until it is done
    add column rechecked_at         timestamptz;            -- when one that was asked for was last done
