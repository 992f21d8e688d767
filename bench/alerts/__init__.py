"""``python -m bench.alerts``: every alert is provoked for real, and seen to fire and to clear.

Debian's Prometheus scrapes an API, a monitor and two edges, and loads the rules that ``frontage metrics alerts``
prints, with their waits and windows cut to seconds; their thresholds stay. Then one thing after another goes wrong:
processes die, Postgres stops, the CA refuses, a disk fills. Printed for each alert: its cause, and the seconds until it
fired and until it cleared once the cause was gone. Needs Debian's ``prometheus``, ``pebble`` and ``faketime``, and root
for the full disk (a tmpfs).
"""
