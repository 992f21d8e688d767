"""The proxy: a request's way is one direction, through these rooms.

accept → [PROXY header] → TLS → parse (`edge.http`) → route (`edge.replica`, `edge.routing`) → rewrite → lease
(`edge.upstream`) → exchange (`edge.proxy`) → finish. ``finish`` runs exactly once for every exchange, failed ones
too.
"""
