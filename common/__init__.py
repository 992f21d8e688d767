"""What every role shares: settings, errors, names, addresses, secrets, time, logs, and Postgres.

Vocabulary (one word per concept, everywhere)
    application   a partner's account unit
    domain        a customer's host name
    product       ``power`` or ``secure``
    origin        the partner's server, from ``applicationUrl``
    downstream    the client's side of the proxy; *upstream* is the origin's
    route         what the edge knows of one domain
    exchange      one request and its response
    lease         an upstream connection held by one exchange
    change feed   the ordered list of what edges must know
    replica       a node's local copy of it
    claim         due work taken for a while
    issuer        who signs certificates
    check         one look at a domain's records; a *transition* is missing or restored
    event         what happened; a *delivery* is an event on its way to a webhook
    batch         a bulk request
    lab           origin, DNS zone and webhook sink on loopback

``common`` imports none of the roles.

The garbage collector looks rarely, from the first import on: classes are made while a role starts, and none of them is
garbage (measured: to import an edge, an API or a monitor takes a tenth to a fifth less CPU time).
"""

import gc

gc.set_threshold(20_000, 20, 50)
