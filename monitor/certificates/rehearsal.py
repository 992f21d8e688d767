"""Rehearsal: walks a domain's way of validation as a CA would, from outside the edge, long before its renewal.

It asks for CAA records. Where the domain's challenge is delegated it asks for the challenge, as the CA will for DNS-01.
Where that does not do, and the domain leads here, it requests a probe beneath ``/.well-known/acme-challenge/`` over
HTTP, by way of whatever stands in front: over IPv6 first, as CAs do, and along redirects. One way that works is
enough, as for the renewal. The domain's addresses and those of redirects are the
customer's word: each is checked by the policy, and time, size and number of requests are bounded. It decides nothing
about orders.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import aiohttp
from yarl import URL

from common import caa
from common.addresses import AddressPolicy
from common.caa_identities import Identities, find_identities
from common.db.order_queue import Order
from common.db.pool import Database
from common.db.renewal_risks import Actor, Risk, RiskRecord
from common.dns import Pass, Resolver
from common.edge_probe import Reached
from common.enrolment.delegations import CHALLENGE_LABEL, Delegations
from common.ip_addresses import parse_address
from common.names import base_of
from common.pinned import pinned_session
from common.probe import CHALLENGE_PROBE_PATH, new_nonce, probe_answer
from common.secrets import Keyring
from common.settings import Settings
from monitor.certificates.issuer import ChallengeKind

Finding: TypeAlias = Risk | Literal["unknown"] | None
"""None: a CA could validate the domain. ``unknown``: that could not be found out now."""

Rehearse: TypeAlias = Callable[[Order, Sequence[ChallengeKind]], Awaitable[Finding]]
"""Of a domain's order, and the ways in which it would be validated, as far as its DNS is known."""

Delegated: TypeAlias = Literal["answered", "unanswered", "missing", "unknown"]
"""A domain's delegated challenge: whether the record is there, and the zone answers."""

_MOST_REDIRECTS: Final = 10  # as Let's Encrypt
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_LONGEST_SECONDS: Final = 5.0


async def rehearse_nothing(_order: Order, _ways: Sequence[ChallengeKind]) -> Finding:
    """Find no risk: an issuer that validates nothing."""
    return None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Walks the way of validation, as a `Rehearse`. One instance per process. `port`: where CAs ask over HTTP."""

    database: Database
    settings: Settings
    resolver: Resolver
    policy: AddressPolicy
    keyring: Keyring
    delegations: Delegations
    port: int = 80

    async def __call__(self, order: Order, ways: Sequence[ChallengeKind]) -> Finding:
        """Return what would fail, the first of it. Raises: `DatabaseUnavailable`."""
        domain = order.domain
        identities = await find_identities(self.database, self.settings)
        async with self.resolver.open_pass() as questions:
            delegated = None if order.label is None else await self._ask_delegated(questions, order)
            authorization = await caa.find_authorization(questions, domain)
            possible: Sequence[ChallengeKind] = ("dns-01", *ways) if delegated == "answered" else ways
            allowed = [way for way in possible if not find_caa_risk(authorization, identities, way)]
            if not allowed:
                return find_caa_risk(authorization, identities, possible[0])
            if delegated == "answered" and "dns-01" in allowed:
                found: Finding = None
            elif "http-01" in allowed:
                found = await self._walk(questions, domain)
                found = "unknown" if found is not None and delegated == "unknown" else found
            else:
                found = await self._find_delegation_risk(order, delegated)
            return "unknown" if found is None and not authorization.is_known else found

    async def _ask_delegated(self, questions: Pass, order: Order) -> Delegated:
        """Look for the delegation's record, and ask for the challenge, which is not there now."""
        delegate = await self.delegations(questions.ask_confirmed, order.domain)
        if delegate.application_id != order.application_id:
            return "missing" if delegate.is_known else "unknown"
        challenge = await questions.ask(f"{CHALLENGE_LABEL}.{base_of(order.domain)}", "TXT")
        return "answered" if challenge.outcome.is_known else "unanswered"

    async def _find_delegation_risk(self, order: Order, delegated: Delegated | None) -> Finding:
        """Return what keeps the only way from working: a delegation that is gone, or a zone that does not answer."""
        if delegated == "unanswered":
            action = (
                f"Have the name servers of {self.settings.acme_dns_zone} answer: the challenge of {order.domain} is"
                " delegated there, and a resolver gets no answer."
            )
            return Risk("delegation_unanswered", action, "operator")
        record = await self.delegations.find_record(order.domain, order.application_id, makes_label=False)
        if delegated == "unknown" or record is None:
            return "unknown"
        action = (
            f"Set `CNAME {record.host} {record.value}` again: without it no certificate authority can validate"
            f" {order.domain}{'' if order.is_wildcard else ', which does not lead here'}."
        )
        return Risk("delegation_missing", action, "domain_owner", RiskRecord("CNAME", record.host, record.value))

    async def _walk(self, questions: Pass, domain: str) -> Finding:
        """Request the probe over IPv6, then over IPv4 where no server answers there."""
        fourth, sixth = await questions.resolve_confirmed(domain, "A", "AAAA")
        if sixth.values:
            reached = await self._ask(questions, domain, sixth.values)
            if reached is Reached.US:
                return None
            if reached is Reached.ANOTHER:
                return _aaaa(domain, sixth.values[0], self._who(sixth.values))
        if fourth.values:
            reached = await self._ask(questions, domain, fourth.values)
            if reached is Reached.US:
                return None
            return _elsewhere(domain) if reached is Reached.ANOTHER else _unreachable(domain, self._who(fourth.values))
        is_known = fourth.outcome.is_known and sixth.outcome.is_known
        # Over IPv6 alone it is unknown: this machine may have none.
        return _unreachable(domain, "domain_owner") if is_known and not sixth.values else "unknown"

    def _who(self, addresses: Sequence[str]) -> Actor:
        """Return who has the server at the addresses: the operator, where they are ours."""
        ours = set(map(str, self.settings.service_servers))
        return "operator" if addresses and ours.issuperset(addresses) else "domain_owner"

    async def _ask(self, questions: Pass, domain: str, addresses: Sequence[str]) -> Reached:
        """Request the probe at these addresses, along redirects."""
        nonce = new_nonce()
        expected = probe_answer(self.keyring, domain, nonce)
        assert expected is not None, "the nonce is ours"
        url = URL.build(scheme="http", host=domain, port=self.port, path=f"{CHALLENGE_PROBE_PATH}{nonce}")
        try:
            for _ in range(_MOST_REDIRECTS):
                answer = await self._get(url, addresses, len(expected))
                if not isinstance(answer, URL):
                    return Reached.US if hmac.compare_digest(answer, expected) else Reached.ANOTHER
                url = answer
                if url.scheme not in ("http", "https") or not url.host or parse_address(url.host) is not None:
                    return Reached.ANOTHER
                found = await questions.resolve_confirmed(url.host, "A", "AAAA")
                addresses = [address for each in found for address in each.values]
        except (aiohttp.ClientConnectionError, OSError, TimeoutError):
            return Reached.NO_SERVER
        except (aiohttp.ClientError, ValueError):
            pass
        return Reached.ANOTHER

    async def _get(self, url: URL, addresses: Sequence[str], size: int) -> bytes | URL:
        """Return the first bytes of a 200 response, or where a redirect leads; nothing for any other status."""
        async with (
            pinned_session(self.policy, addresses, longest_seconds=_LONGEST_SECONDS, tls=_unverified()) as session,
            session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as response,
        ):
            if response.status in _REDIRECTS:
                return url.join(URL(response.headers.get("Location", "")))
            return await response.content.read(size + 1) if response.status == 200 else b""


def _unverified() -> ssl.SSLContext:
    """CAs follow a redirect to HTTPS whatever certificate is there."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def find_caa_risk(authorization: caa.Authorization, identities: Identities, way: ChallengeKind) -> Risk | None:
    """Return the risk that no CA of ours may issue by the domain's CAA records; None also where they are unknown."""
    records, is_wildcards = authorization.records, authorization.is_wildcards
    if not records or any(caa.may_issue(records, *each, way, is_wildcards=is_wildcards) for each in identities):
        return None
    ours = next((names[0] for names, _ in identities if names), None)
    allowed = ", ".join(caa.list_allowed_cas(authorization)) or "no authority"
    where = authorization.name
    add = f'add `CAA {where} 0 issue "{ours}"`' if ours else "let our certificate authority issue too"
    action = f"At {where}, {add}: its CAA records let {allowed} issue certificates, and not our authority."
    record = RiskRecord("CAA", where, f'0 issue "{ours}"') if ours else None
    return Risk("caa_forbids", action, "domain_owner", record)


def _aaaa(domain: str, address: str, who: Actor) -> Risk:
    action = (
        f"Remove the AAAA record {address} of {domain}, or have it lead here as its other records do: certificate"
        " authorities ask over IPv6 first, and there another server answers."
    )
    return Risk("aaaa_elsewhere", action, who, RiskRecord("AAAA", domain, address))


def _elsewhere(domain: str) -> Risk:
    action = (
        f"Let plain HTTP requests for http://{domain}/.well-known/acme-challenge/ reach us unchanged, through whatever"
        " stands in front: another server answers them now."
    )
    return Risk("challenge_elsewhere", action, "domain_owner")


def _unreachable(domain: str, who: Actor) -> Risk:
    action = (
        f"Let connections to port 80 of {domain} through: certificate authorities ask there for"
        " /.well-known/acme-challenge/, and no server answers now."
    )
    return Risk("challenge_unreachable", action, who)
