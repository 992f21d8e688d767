-- The statuses of refused changes of Power and Secure: always 502, as specified, or as HTTP has them.
alter table applications add column error_status text not null default '502'
    constraint applications_error_status check (error_status in ('502', 'http'));
