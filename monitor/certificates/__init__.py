"""Certificates: issuers, and the life of an order from wanted to live to renewed.

``issuer`` is what every issuer promises; ``internal`` is the local authority, ``acme`` any public one, ``issuers``
several of them in order. ``issuance`` carries an order through its phases: ``renewal`` decides, ``dns_moved_away`` asks
the DNS, ``journal`` writes down what a CA is asked for; ``revoking`` ends a certificate before its time. Rows and their
rules are `common.db.orders`, `common.db.certificates`, `common.db.ca_ledger` and `common.db.revocations`.
"""
