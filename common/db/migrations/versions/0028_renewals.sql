-- Requested renewals are counted in ``enrolments``, whose rows outlive the order.

alter table orders drop column renewals_requested_at;
