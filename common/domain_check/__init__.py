"""What can be said of any domain: which provider hosts its DNS, what can be done there, and what stands in the way.

Words
    zone view       what the zone's own servers answer now: its servers, its hosts, and the delegation (`zone_view`)
    host view       the part of a zone view about one name
    provider        the company that hosts a zone; found by the names of its name servers (`providers`)
    capabilities    what can be set up at a provider; what is not known has a careful default
    way             how records can be put in place at a provider (`ways`)
    conflict        an existing record that stands in the way of a requested one (`conflicts`)

`reading` alone asks the DNS and returns a zone view.
"""
