"""Certificates: issuers, and the life of an order from wanted to live to renewed.

``issuer`` is what every issuer promises, ``internal`` the local authority, ``issuance`` carries an order through
its phases. Rows and their rules are `common.db.orders` and `common.db.certificates`.
"""
