-- The life of certificates: the CA's limits as a ledger, renewal, revocation.

select;
