"""Questions to the DNS: of recursive resolvers, and of the name servers of the zone itself.

Words
    question        a name and a record type
    answer          how a question ended (`Outcome`), and the values where there are records
    resolver        a recursive resolver; its answer may come from a cache, as old as the record's TTL allows
    authoritative   of a server that has the zone, with the AA bit set (RFC 1035 §4.1.1); never from a cache
    pass            the questions of one task, each asked once, all within `resolvers.PASS_SECONDS`
    chain           the CNAME records that lead from a name to another
    evidence        which server answered what, and when

``questions`` has the words as types. ``resolvers`` asks resolvers for one task, by ``shared_resolvers``, which asks for
thousands of tasks at once by ``channels`` (c-ares); ``servers`` has which resolvers there are. ``authority`` finds and
asks a zone's own servers, by ``direct``, which has ``question_sockets``, and reads the usual answer by ``wire`` and any
other by ``replies`` (dnspython); ``authoritative`` makes one answer of theirs and follows chains through zones.
``evidence`` keeps what was answered.
Nothing here remembers an answer beyond its task, except ``delegations``, which no loss is decided by.
"""

from common.dns.authoritative import Authoritative
from common.dns.questions import MAX_CHAIN_HOPS, Answer, Chain, Outcome
from common.dns.resolvers import Pass, Resolver

__all__ = ["MAX_CHAIN_HOPS", "Answer", "Authoritative", "Chain", "Outcome", "Pass", "Resolver"]
