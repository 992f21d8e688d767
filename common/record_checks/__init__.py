"""Record checks: whether records are in the DNS, by resolvers and by their zone's own servers.

`record_checker` asks, `verdicts` decides. The monitor checks monitored domains with it, the API what a person has just
set: one set of rules.
"""
