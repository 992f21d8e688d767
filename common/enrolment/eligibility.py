"""Where a domain's DNS leads: the questions to ask, and what the answers mean.

Step one is the partner's: the application's cname target leads to one of our targets. Step two is the customer's:
the domain leads to the cname target, or, without a CNAME, only to our servers' addresses. Behind a CDN step two cannot
be seen in the DNS; there the domain counts when our edge answers under its name. A wildcard leads
where a name beneath it leads that nothing else in its zone is about (RFC 4592 §2.2.1). A resolver's "yes" is believed;
its "no" may come from a cache, so the zone's own servers are asked before it counts. Whether leading here is enough to
have the domain, `common.enrolment.ownership` decides. This module reads and writes no database.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from common.dns import Answer, Chain, Outcome, Pass
from common.enrolment.ownership import OwnershipClaim
from common.errors import InvalidName, OperatorError
from common.names import DomainName, base_of, parse_host_name
from common.records import RecordType
from common.settings import Settings

ADDRESS_TYPES: Final[tuple[RecordType, ...]] = ("A", "AAAA")

EdgeProbe = Callable[[Pass, str], Awaitable[bool]]
"""Whether our edge answers requests for this name over HTTP."""


@dataclass(frozen=True, slots=True)
class ServiceTargets:
    """Where domains must lead. Names are in canonical form."""

    targets: frozenset[str]
    service_servers: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> ServiceTargets:
        """Read the targets and servers from the settings. Raises: `OperatorError`."""
        names = {"FRONTAGE_POWER_TARGET": settings.power_target, "FRONTAGE_SSL_TARGET": settings.ssl_target}
        try:
            targets = frozenset(map(parse_host_name, names.values()))
        except InvalidName as error:
            raise OperatorError(f"{' or '.join(names)} is no host name: {error}") from error
        return cls(targets, frozenset(map(str, settings.service_servers)))


@dataclass(frozen=True, slots=True)
class EligibilityFindings:
    """Where a domain and its application's cname target lead.

    `claim`: how the domain leads to the application; none where it does not. `unresolved`: why nothing can be said
    of the domain. `step_one` is RECORDS once the partner's part is done. `bypasses_target`: the domain's CNAMEs lead to
    us, but not through the application's cname target. `way`: the names that its CNAMEs lead through, where they do.
    """

    claim: OwnershipClaim | None
    unresolved: Outcome | None
    step_one: Outcome
    bypasses_target: bool = False
    way: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_pointed(self) -> bool:
        """Return whether the domain leads to the application."""
        return self.claim is not None

    @property
    def leads_here(self) -> bool:
        """Return whether the domain leads to us, by whatever way."""
        return self.is_pointed or self.bypasses_target

    @property
    def is_eligible(self) -> bool:
        """Return whether both steps are done."""
        return self.is_pointed and self.step_one is Outcome.RECORDS

    @property
    def lacks_step_one(self) -> bool:
        """Known to be incomplete, as opposed to not known."""
        return self.step_one.is_known and self.step_one is not Outcome.RECORDS

    @property
    def unknown(self) -> Outcome | None:
        """Why eligibility is unknown; None when it is known."""
        if self.unresolved is not None:
            return self.unresolved
        return self.step_one if self.is_pointed and not self.step_one.is_known else None


async def check_eligibility(
    questions: Pass, name: DomainName, cname_target: str, service: ServiceTargets, probe: EdgeProbe
) -> EligibilityFindings:
    """Ask where the domain leads, and whether step one is done."""
    if name.is_root:
        return await _check_root(questions, name.text, service, probe)
    return await _check_subdomain(questions, host_to_ask(name), cname_target, service, probe)


def host_to_ask(name: DomainName) -> str:
    """Return the host name that shows where `name` leads: of a wildcard a random one, which only its records answer."""
    return f"{secrets.token_hex(8)}.{base_of(name.text)}" if name.is_wildcard else name.text


async def _check_subdomain(
    questions: Pass, domain: str, cname_target: str, service: ServiceTargets, probe: EdgeProbe
) -> EligibilityFindings:
    chain, step_one = await asyncio.gather(
        _follow(questions, domain, {cname_target, *service.targets} - {domain}, cname_target),
        _follow(questions, cname_target, service.targets),
    )
    if chain.end is Outcome.RECORDS:
        is_through = chain.names[-1] == cname_target
        way = (*chain.names, *step_one.names) if is_through else chain.names
        return EligibilityFindings(
            OwnershipClaim.CNAME if is_through else None, None, step_one.end, not is_through, way
        )
    if not chain.end.is_known or (chain.end is Outcome.NO_NAME and not chain.names):
        return EligibilityFindings(None, chain.end, step_one.end)
    # The name exists, and no CNAME leads to us.
    addresses = await questions.resolve_confirmed(domain, *ADDRESS_TYPES)
    is_ours = _are_ours(addresses, service) or await probe(questions, domain)
    return EligibilityFindings(OwnershipClaim.ADDRESS if is_ours else None, None, step_one.end)


async def find_target_lead(questions: Pass, cname_target: str, service: ServiceTargets) -> bool | None:
    """Return whether the cname target leads to one of our targets; None where that could not be asked."""
    end = (await _follow(questions, cname_target, service.targets)).end
    return end is Outcome.RECORDS if end.is_known else None


async def _follow(questions: Pass, name: str, goals: Collection[str], wanted: str | None = None) -> Chain:
    """Follow the chain that resolvers know, or that the zones' own servers answer now.

    The resolvers' counts if it leads to `wanted`, or any goal: a resolver remembers for the zone's negative TTL that a
    name was not there, and the old CNAME for its TTL.
    """
    if not name:
        return Chain((), Outcome.NO_NAME)
    chain = await questions.follow(name, goals)
    if chain.end is Outcome.RECORDS and (not wanted or chain.names[-1] == wanted):
        return chain
    return await questions.follow_confirmed(name, goals)


async def _check_root(questions: Pass, domain: str, service: ServiceTargets, probe: EdgeProbe) -> EligibilityFindings:
    if _are_ours([await questions.ask(domain, kind) for kind in ADDRESS_TYPES], service):
        return EligibilityFindings(OwnershipClaim.ADDRESS, None, Outcome.RECORDS)
    answers = [await questions.ask_confirmed(domain, kind) for kind in ADDRESS_TYPES]
    for answer in answers:
        if not answer.outcome.is_known or answer.outcome is Outcome.NO_NAME:
            return EligibilityFindings(None, answer.outcome, Outcome.RECORDS)
    is_ours = _are_ours(answers, service) or await probe(questions, domain)
    return EligibilityFindings(OwnershipClaim.ADDRESS if is_ours else None, None, Outcome.RECORDS)


def _are_ours(answers: Sequence[Answer], service: ServiceTargets) -> bool:
    """Return whether there are addresses, all known, and no others than our servers'."""
    addresses = {value for answer in answers for value in answer.values}
    is_known = all(answer.outcome in (Outcome.RECORDS, Outcome.NO_DATA) for answer in answers)
    return is_known and bool(addresses) and addresses <= service.service_servers
