"""``python -m bench.connect_faults``: flows of the connect modal while everything around them fails.

Each flow connects a name of a zone of its own, and takes the change back: half of them by RFC 2136 with knot, half by
the API of PowerDNS. A proxy before each fails halfway, refuses for a while, is slow, accepts a change without making
it, and cuts the connection before or after the change. A wrong token is sent first. Another party changes the zone
before, while and after it is written. The API is killed by SIGKILL before and after a change reaches the zone, and both
monitors at each step that is theirs. In the end each flow was finished once, and undone. Printed, each of which should
be 0:

    records lost        requested records that are not in the zone at the end of a flow, and records of before that are
                        not there after its undo
    records doubled     records that are there at either time, and should not be
    foreign records     records of the other party that are not there any more
    flows stuck         flows that did not come to their end, or that no process works on although one should
    effects doubled     events that were recorded twice or never, names not enrolled once

Seeded: ``--seed`` repeats the faults drawn, though not their timing. Bounded by ``--flows``. Needs Debian's ``knot``,
``pdns-server`` and ``pdns-backend-sqlite3``.
"""
