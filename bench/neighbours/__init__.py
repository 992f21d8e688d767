"""``python -m bench.neighbours``: what a client waits for while another client, or an origin, does its worst.

One client asks for 2 bytes on one connection, a request every 2 ms, first alone and then beside each offence. In the
table: the median and the worst of its requests in milliseconds, through us and through nginx, one worker each on a core
of its own. Offenders send what they were given, seeded, as fast as they can from the other core, where the origins and
the asking client run, too. The proxies, the asking client and its origin have priorities of real time where that is
permitted; yet the machine disturbs a worst request more than anything: each figure is the lowest of the rounds, in
which the peers take turns. (Linux stops a process of real time that never rests for 50 ms of a second.)

The goals: no offence makes a request wait longer than 20 ms; beside new TLS connections the median is at most three
times what it is alone.
"""
