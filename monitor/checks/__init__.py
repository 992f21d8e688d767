"""Checks: the records of every monitored domain, once an hour, and the events when they are missing or restored.

Words
    check        the questions about one domain's records, and a verdict on each
    verdict      present, missing, or unknown, which changes nothing
    outcome      what a check changes in a domain's row, and the event it causes, if any
    alarm        an event for a missing record; held when too many come at once (`held_alarms`)

``transitions``, ``held_alarms`` and ``schedule`` decide, as does `common.record_checks.verdicts`;
`common.record_checks.record_checker` runs one check, with the questions of `common.dns`; ``outcomes`` writes many at
once; ``checking`` puts the parts together, fair to applications (`common.fair_queue`, `monitor.concurrency_shares`) and
within ``rate_limit``; ``health`` measures. Rows and their rules are `common.db.checks`.
"""
