"""Connecting a domain: from a partner's configuration to DNS records that are live, and back. Knows no HTTP, no SQL.

Words
    configuration   what a partner sends: records with placeholders, and what they enrol the domain in
    vouched         of a configuration: given with full rights, or registered; else a browser gave it (`rights`)
    flow            one person's way through it: a row (`common.db.connect_flows`) in one of the states of
                    `common.flow_states`; its JSON columns are types of `common.flows`
    requested       the configuration's records for one domain, without placeholders
    plan            what has to change in the zone for them, record set by record set, with before and after
    digest          of a plan and of the record sets it was made from: a plan is applied only while it holds
    way             how the change gets into the zone: Domain Connect, a provider's API, RFC 2136, or by hand
    undo            what was in the zone before, and how it gets back there

``configuration`` reads and resolves, ``root`` fits records at the root to the provider, ``plan`` decides,
``ways`` writes.
"""
