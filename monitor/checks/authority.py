"""A zone's own name servers: found as a resolver finds them, and asked directly.

The way down begins at the nearest ancestor whose NS records a resolver knows, and follows referrals from there, so
that a resolver that hides a delegation only makes the way longer. Only answers with the AA bit count (RFC 1035 §4.1.1);
of a delegation, the parent's word counts too (RFC 2181 §5.4.1 ranks it lower, but it is what resolvers go by). That
there is nothing counts only with the SOA of the zone that has nothing: who has the zone must add it (RFC 2308 §3), who
says so for other reasons (a zone not loaded, a balancer, a liar) rarely does.
Addresses come from outside: each is checked against the address policy, and is the one asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from common.addresses import AddressPolicy
from common.dns import Answer, Outcome
from common.errors import AddressRefused
from common.records import RecordType, normal_name, normal_value
from common.settings import HostPort
from monitor.checks.direct import Direct

DNS_PORT = 53

_MOST_AT_ONCE = 256  # each is a socket
_MOST_SERVERS = 4  # of a zone
_MOST_NAMES = 6
_MOST_REFERRALS = 8

Resolve = Callable[[str, RecordType], Awaitable[tuple[str, ...]]]
"""The values a name has, says any resolver; none when no one knows of any."""


@dataclass(frozen=True, slots=True)
class Referral:
    """Ask those: the servers of `zone`, with the addresses that came along."""

    zone: str
    names: tuple[str, ...]
    glue: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What one server said; the answer is unknown unless it has the authority to say it."""

    answer: Answer
    referral: Referral | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """A server of the zone, and its answer."""

    server: HostPort
    answer: Answer


AskServer = Callable[[HostPort, str, RecordType], Awaitable[Reply]]
"""A question to one server."""


class Authority:
    """Holds no answer, and no more sockets at once than there is room for. `port` is another than 53 only where tests
    and benchmarks say so."""

    def __init__(self, policy: AddressPolicy, *, port: int = DNS_PORT) -> None:
        self._policy = policy
        self._port = port
        self._direct = Direct(most_at_once=_MOST_AT_ONCE)

    async def consult(self, name: str, kind: RecordType, resolve: Resolve, ask: AskServer | None = None) -> list[Heard]:
        """What the servers of the zone that `name` is in say, those that could not be asked included. `ask` may keep
        back what `Authority.ask` would ask."""
        ask = ask or self.ask
        zone, servers = await self._nearest(name, resolve)
        heard: list[Heard] = []
        for _ in range(_MOST_REFERRALS):
            replies = await asyncio.gather(*(ask(server, name, kind) for server in servers))
            heard = [Heard(server, reply.answer) for server, reply in zip(servers, replies, strict=True)]
            referral = next((reply.referral for reply in replies if is_below(reply.referral, zone)), None)
            if referral is None or any(each.answer.outcome.is_known for each in heard):
                break
            zone, servers = referral.zone, await self._addresses(referral, resolve)
        return heard

    async def ask(self, server: HostPort, name: str, kind: RecordType) -> Reply:
        """Without recursion. It ends within seconds."""
        said = await self._direct.ask(server, name, kind, recursion=False)
        return Reply(Answer(said)) if isinstance(said, Outcome) else read_reply(said, name, kind)

    async def _nearest(self, name: str, resolve: Resolve) -> tuple[str, list[HostPort]]:
        labels = name.split(".")
        for start in range(len(labels)):
            zone = ".".join(labels[start:])
            if names := await resolve(zone, "NS"):
                return zone, await self._addresses(Referral(zone, names, ()), resolve)
        return "", []

    async def _addresses(self, referral: Referral, resolve: Resolve) -> list[HostPort]:
        addresses = referral.glue
        if not addresses:
            found = await asyncio.gather(*(_resolve_address(name, resolve) for name in referral.names[:_MOST_NAMES]))
            addresses = tuple(values[0] for values in found if values)
        return [HostPort(address, self._port) for address in addresses if self._may_ask(address)][:_MOST_SERVERS]

    def _may_ask(self, address: str) -> bool:
        try:
            self._policy.check(ip_address(address), self._port)
        except (AddressRefused, ValueError):
            return False
        return True


async def _resolve_address(name: str, resolve: Resolve) -> tuple[str, ...]:
    return await resolve(name, "A") or await resolve(name, "AAAA")


def read_reply(reply: dns.message.Message, name: str, kind: RecordType) -> Reply:
    owner, rcode = dns.name.from_text(name), reply.rcode()
    if rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        return Reply(Answer(Outcome.SERVER_FAILURE))
    if reply.flags & dns.flags.AA:
        if values := values_in(reply.answer, owner, kind):
            return Reply(Answer(Outcome.RECORDS, values))
        return Reply(Answer(_absence(reply, owner)))
    if kind == "NS" and (values := values_in(reply.authority, owner, kind)):
        return Reply(Answer(Outcome.RECORDS, values))
    return Reply(Answer(Outcome.SERVER_FAILURE), _referral(reply, owner))


def _absence(reply: dns.message.Message, owner: dns.name.Name) -> Outcome:
    """How an answer without the records asked for is understood. An alias has no others beside it, and the code speaks
    of where it leads (RFC 6604 §3)."""
    if any(rrset.name == owner and rrset.rdtype == dns.rdatatype.CNAME for rrset in reply.answer):
        return Outcome.NO_DATA
    if not any(rrset.rdtype == dns.rdatatype.SOA and owner.is_subdomain(rrset.name) for rrset in reply.authority):
        return Outcome.SERVER_FAILURE
    return Outcome.NO_NAME if reply.rcode() == dns.rcode.NXDOMAIN else Outcome.NO_DATA


def is_below(referral: Referral | None, zone: str) -> bool:
    """Whether it leads further down; anything else would be asked in circles."""
    return referral is not None and referral.zone != zone and (not zone or referral.zone.endswith(f".{zone}"))


def _referral(reply: dns.message.Message, owner: dns.name.Name) -> Referral | None:
    for rrset in reply.authority:
        if rrset.rdtype == dns.rdatatype.NS and owner.is_subdomain(rrset.name):
            names = tuple(normal_name(rdata.to_text()) for rdata in rrset)
            glue = (each for each in reply.additional if each.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA))
            ours = (each for each in glue if normal_name(each.name.to_text()) in names)
            return Referral(normal_name(rrset.name.to_text()), names, tuple(_texts(ours)))
    return None


def _texts(rrsets: Iterable[dns.rrset.RRset]) -> list[str]:
    return [rdata.to_text() for rrset in rrsets for rdata in rrset]


def values_in(section: Iterable[dns.rrset.RRset], owner: dns.name.Name | None, kind: RecordType) -> tuple[str, ...]:
    """In normal form (`common.records`); without `owner`, of whatever name."""
    wanted = dns.rdatatype.from_text(kind)
    ours = (rrset for rrset in section if rrset.rdtype == wanted and owner in (None, rrset.name))
    return tuple(normal_value(kind, text) for text in _texts(ours))
