"""``python -m bench.tenants``: what one application waits for while another does its worst, on the API.

Three offences, each against a real API on loopback with a Postgres of its own. Beside each, another application asks at
a steady pace; its times stand alone and beside the offender in the table. Every request must be answered as it should:

    dead DNS            400 clients of one application ask about names whose servers do not answer; a client that is
                        refused asks again after ``Retry-After``
    lists               12 clients of the application with ``--domains`` domains list them by status, from anywhere;
                        rate limits are lifted, since lists are what is measured
    unfinished bodies   520 and 1,000 connections send half a body to /token; then others, from the same address and
                        from another, ask for a token and for /healthz, each over a connection of its own
    unread answers      the same beside 500 connections that ask 20 times for /openapi.json and read nothing

Not varied: one API process, one resolver, one Postgres, all on this machine and without latency between them. It takes
about five minutes and 2 GB of disk (in ``--directory``), most of it to write a million domains. The table is
also written to ``bench/output/tenants.json``.
"""
