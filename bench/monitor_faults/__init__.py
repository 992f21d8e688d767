"""``python -m bench.monitor_faults``: the monitor while everything around it fails, and what it got wrong.

Two resolvers lie (NXDOMAIN to every tenth question), fail, stay silent and truncate, and now and then one of them is
gone for seconds; the zones' own servers fail too, and sometimes deny what they have, without the proof that they have
not. Two monitors check, deliver and work off batches; an API serves. All are killed with SIGKILL at random moments, as
is Postgres, the whole of it or one of its children. The webhooks' receiver answers some deliveries with errors, late,
never, or by half.

Meanwhile records of some domains go and come back; most domains never lose anything; and partners add, change and
remove domains and their records through the API, one by one and in batches. Printed in the end, each of which should
be 0:

    false alarms        events that name a record missing which was there, or restored while one was not
    missed transitions  losses and returns that were not reported in time, and domains whose check is wrong
    lost webhooks       events that the receiver never accepted, though nothing superseded them
    lost writes         requests answered with success that did not hold, or with a refusal that had no reason to be

Edges take no part: they neither ask the DNS for a check, nor raise or deliver events of monitored records;
`bench.certificate_faults` kills them. Seeded: ``--seed`` repeats the faults drawn, though not their timing. Bounded:
``--minutes`` and what settling takes.
"""
