"""Enrolment: whether an application may have a name under Power or Secure, and the transaction that gives it.

`enrolling.Enrolling.enrol` is the one way in for POST /power, POST /ssl and the flows of the connect modal; an import
goes through `batch.EnrolmentBatch`, by the same rules and without questions. Both answer `Enrolled` or
`EnrolmentRefused` with a code. Each caller turns the code into words: an HTTP refusal, a flow's hint, a row's error.

    request        what is asked for, and by which policy
    rules          what a request and the application's own settings decide
    eligibility    where the DNS leads
    ownership      whose the name is; `ownership_evidence` asks the DNS for proofs
    domain_claims  both joined, and the transaction in which a name is free or moves
    origins        the origin that must answer before a name is secured

Nothing here knows HTTP statuses or makes HTTP requests: the probes are parameters (`common.edge_probe`,
`common.origin_probe`).
"""
