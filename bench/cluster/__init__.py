"""``python -m bench.cluster``: several machines, and what is lost when their parts fail.

Three Postgres servers under Patroni with etcd, two APIs behind HAProxy, three edges (the second reaches the database
over slow links, the third follows standbys), two monitors, Pebble, an origin, a webhook receiver and the lab's DNS.
Each is a machine of its own: a network namespace, or an address of loopback where namespaces are refused.

Partners enrol, change, remove and read domains through the balancer; visitors ask every edge over HTTPS and verify the
certificate and the answer. Meanwhile a nemesis, whose decisions ``--seed`` repeats, kills, stops, cuts, slows and
fills. Every request becomes a line of a history. When all is repaired, a checker that shares no code with what is
under test judges it. Each of these should be 0:

    lost writes           answered with success, and not there (with ``--asynchronous``: beyond what the failover lost)
    impossible reads      answers that no write explains
    stale answers         of a route that was not current for longer than the edge admits at ``/readyz``
    failed requests       of a visitor whose edge nothing had happened to
    certificates          missing, doubled, or not served by every edge
    flows                 of the connect modal that were lost, or do not come to their end
    webhooks              events that did not arrive, or that are of no event
    replicas, leases      servers of Postgres that differ, edges without a lease or behind, claims that nobody works on

``--only restored-backup`` replaces all servers by a backup of a while ago: what was written after the backup is gone,
and nothing else may be.
"""
