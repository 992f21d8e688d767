"""Checks: every monitored domain looked at once an hour, and what became of its records told in events.

Words
    question     a name and a record type, asked of one server
    look         whether one record is there, in the answers of one speaker (a resolver, or the zone's own servers)
    verdict      what is believed in the end: present, missing, or unknown, which changes nothing
    evidence     who answered what, when: kept with the check
    outcome      what a check makes of a domain's row, and the event it causes, if any
    alarm        an event that says a record is missing; held when too many come at once (`mass`)

``verdicts``, ``transitions``, ``mass``, ``schedule`` and ``evidence`` decide and are pure; ``resolvers`` and
``authority`` ask, ``direct`` where it is dnspython that does; ``looking`` carries one check through; ``outcomes``
writes many at once; ``checking`` puts it all together, fair to applications (`common.fair_queue`,
`common.concurrency_shares`) and at its ``pace``; and ``health`` says how it fares. Rows and their
rules are `common.db.checks`.
"""
