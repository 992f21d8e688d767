"""Where a domain's DNS leads: what there is to ask, and what the answers mean (SPEC 2.6, CHOICES "Eligibility").

Step one is the partner's: the application's cname target leads to one of our targets. Step two is the customer's:
the domain leads to the cname target, or, for a root, which can have no CNAME, only to our servers' addresses.
Behind a CDN step two cannot be seen in the DNS; there the domain counts when our edge answers under its name.
This module reads and writes no database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from common.dns import Outcome, Pass
from common.errors import InvalidName, OperatorError
from common.names import DomainName, parse_host_name
from common.settings import Settings

EdgeProbe = Callable[[Pass, str], Awaitable[bool]]
"""Whether our edge answers requests for this name over HTTP."""


@dataclass(frozen=True, slots=True)
class ServiceTargets:
    """Where domains must lead. Names are in canonical form."""

    targets: frozenset[str]
    service_servers: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> ServiceTargets:
        """Raises: `OperatorError`."""
        names = {"FRONTAGE_POWER_TARGET": settings.power_target, "FRONTAGE_SSL_TARGET": settings.ssl_target}
        try:
            targets = frozenset(map(parse_host_name, names.values()))
        except InvalidName as error:
            raise OperatorError(f"{' or '.join(names)} is no host name: {error}") from error
        return cls(targets, frozenset(map(str, settings.service_servers)))


@dataclass(frozen=True, slots=True)
class Findings:
    """`unresolved`: why nothing can be said of the domain. `step_one` is RECORDS once the partner's part is done."""

    is_pointed: bool
    unresolved: Outcome | None
    step_one: Outcome

    @property
    def is_eligible(self) -> bool:
        return self.is_pointed and self.step_one is Outcome.RECORDS

    @property
    def lacks_step_one(self) -> bool:
        """Known to be incomplete, as opposed to not known."""
        return self.step_one.is_known and self.step_one is not Outcome.RECORDS

    @property
    def unknown(self) -> Outcome | None:
        """Why eligibility cannot be told; none when it can."""
        if self.unresolved is not None:
            return self.unresolved
        return self.step_one if self.is_pointed and not self.step_one.is_known else None


async def check_eligibility(
    questions: Pass, name: DomainName, cname_target: str, service: ServiceTargets, probe: EdgeProbe
) -> Findings:
    if name.is_root:
        return await _check_root(questions, name.text, service, probe)
    return await _check_subdomain(questions, name.text, cname_target, service, probe)


async def _check_subdomain(
    questions: Pass, domain: str, cname_target: str, service: ServiceTargets, probe: EdgeProbe
) -> Findings:
    step_one = Outcome.NO_NAME
    if cname_target:
        step_one = (await questions.follow(cname_target, service.targets)).end
    chain = await questions.follow(domain, {cname_target, *service.targets} - {domain})
    if chain.end is Outcome.RECORDS:
        return Findings(chain.names[-1] == cname_target, None, step_one)
    if not chain.end.is_known or (chain.end is Outcome.NO_NAME and not chain.names):
        return Findings(False, chain.end, step_one)
    # The name exists and leads elsewhere, as far as can be seen.
    return Findings(await probe(questions, domain), None, step_one)


async def _check_root(questions: Pass, domain: str, service: ServiceTargets, probe: EdgeProbe) -> Findings:
    answers = [await questions.ask(domain, "A"), await questions.ask(domain, "AAAA")]
    for answer in answers:
        if not answer.outcome.is_known or answer.outcome is Outcome.NO_NAME:
            return Findings(False, answer.outcome, Outcome.RECORDS)
    addresses = {value for answer in answers for value in answer.values}
    is_pointed = bool(addresses) and addresses <= service.service_servers
    return Findings(is_pointed or await probe(questions, domain), None, Outcome.RECORDS)
