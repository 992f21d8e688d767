"""Load, comparisons with peers, figures, and the lab they and the tests run against.

``locust -f bench/`` imports every file under this folder by its bare name, under gevent: no module here may
do work when it is imported, and none may be called like a library another one imports (a ``dns.py`` here
would be found in dnspython's place).
"""
