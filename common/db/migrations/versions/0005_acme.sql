-- ACME accounts and what edges must know of them.

select;
