"""Replies of name servers, as dnspython parses them, read as answers.

Rules
    a zone's own server is believed only with the AA bit (RFC 1035 §4.1.1); of a delegation, the parent's NS records
        count too (RFC 2181 §5.4.1 ranks them lower, but resolvers follow them)
    "no such name" and "no such data" count only with the SOA of the zone that lacks them: a server that has the zone
        must add it (RFC 2308 §3); one that answers so for other reasons (zone not loaded, load balancer, forgery)
        rarely does
    records of other names than the one asked for do not count
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from common.dns.questions import Answer, Outcome
from common.records import RecordType, normal_name, normal_value


@dataclass(frozen=True, slots=True)
class Referral:
    """The servers of `zone`, below the zone asked, with the addresses that came along."""

    zone: str
    names: tuple[str, ...]
    glue: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerReply:
    """One server's reply; the answer is unknown unless the server is authoritative for it."""

    answer: Answer
    referral: Referral | None = None


def read_authoritative(reply: dns.message.Message, name: str, kind: RecordType) -> ServerReply:
    """Read the reply of a zone's own server to a question without recursion."""
    owner, rcode = dns.name.from_text(name), reply.rcode()
    if rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        return ServerReply(Answer(Outcome.SERVER_FAILURE))
    if reply.flags & dns.flags.AA:
        aliases = None if kind == "CNAME" else _records(reply.answer, owner, "CNAME")
        answer = _records(reply.answer, owner, kind) or Answer(_absence(reply, owner))
        if aliases is not None:
            answer = replace(answer, aliases=aliases.values, ttl_seconds=max(answer.ttl_seconds, aliases.ttl_seconds))
        return ServerReply(answer)
    if kind == "NS" and (delegation := _records(reply.authority, owner, kind)):
        return ServerReply(delegation)
    return ServerReply(Answer(Outcome.SERVER_FAILURE), _referral(reply, owner))


def read_recursive(reply: dns.message.Message, kind: RecordType, owner: str | None) -> Answer:
    """Read the reply of a resolver.

    With `owner`, only records of that name count, not where a CNAME led.
    """
    if reply.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        return Answer(Outcome.SERVER_FAILURE)
    if answer := _records(reply.answer, None if owner is None else dns.name.from_text(owner), kind):
        return answer
    outcome = Outcome.NO_NAME if reply.rcode() == dns.rcode.NXDOMAIN else Outcome.NO_DATA
    return Answer(outcome, ttl_seconds=_absent_seconds(reply))


def _absent_seconds(reply: dns.message.Message) -> int:
    """Return how long a resolver may still answer so (RFC 2308 §5); 0 if the reply does not state it."""
    soas = [rrset for rrset in reply.authority if rrset.rdtype == dns.rdatatype.SOA]
    return min((min(rrset.ttl, rrset[0].minimum) for rrset in soas), default=0)


def is_below(referral: Referral | None, zone: str) -> bool:
    """Return whether a referral leads further down; any other would lead in circles."""
    return referral is not None and referral.zone != zone and (not zone or referral.zone.endswith(f".{zone}"))


def _absence(reply: dns.message.Message, owner: dns.name.Name) -> Outcome:
    """Return the outcome of an authoritative answer without the records asked for.

    An alias has no other records beside it, and the response code is about the name that it leads to (RFC 6604 §3).
    """
    if any(rrset.name == owner and rrset.rdtype == dns.rdatatype.CNAME for rrset in reply.answer):
        return Outcome.NO_DATA
    if not any(rrset.rdtype == dns.rdatatype.SOA and owner.is_subdomain(rrset.name) for rrset in reply.authority):
        return Outcome.SERVER_FAILURE
    return Outcome.NO_NAME if reply.rcode() == dns.rcode.NXDOMAIN else Outcome.NO_DATA


def _referral(reply: dns.message.Message, owner: dns.name.Name) -> Referral | None:
    for rrset in reply.authority:
        if rrset.rdtype == dns.rdatatype.NS and owner.is_subdomain(rrset.name):
            names = tuple(normal_name(rdata.to_text()) for rdata in rrset)
            glue = (each for each in reply.additional if each.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA))
            ours = (each for each in glue if normal_name(each.name.to_text()) in names)
            return Referral(normal_name(rrset.name.to_text()), names, tuple(_texts(ours)))
    return None


def _records(section: Iterable[dns.rrset.RRset], owner: dns.name.Name | None, kind: RecordType) -> Answer | None:
    """Return the records of a type and, if given, of one owner; None if there are none."""
    wanted = dns.rdatatype.from_text(kind)
    ours = [rrset for rrset in section if rrset.rdtype == wanted and owner in (None, rrset.name)]
    values = tuple(normal_value(kind, text) for text in _texts(ours))
    return Answer(Outcome.RECORDS, values, ttl_seconds=max(each.ttl for each in ours)) if values else None


def _texts(rrsets: Iterable[dns.rrset.RRset]) -> list[str]:
    return [rdata.to_text() for rrset in rrsets for rdata in rrset]
