"""What is wrong with a domain: everything that can be seen of it from here, looked at afresh.

The name's enrolments are read first, and once: without them its DNS and what the application has are unknown. Each part
is looked at by itself, and may fail by itself within `LONGEST_SECONDS`: it is unknown then (None), and the others still
stand. Of a name that another application holds, only that is shown, and what anybody could see. What the facts come to
is `api.services.next_step`'s to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from api.schemas.evidence import hide_private
from api.services.enrolment import EDGES_WITHIN_SECONDS, EnrolmentService, is_foreign
from api.services.origin_state import OriginState, OriginStates, identity_of
from common import caa
from common.caa_identities import find_identities
from common.db import (
    ca_ledger,
    certificates,
    edge_nodes,
    feed,
    monitor_nodes,
    orders,
    own_certificates,
    policies,
    target_sightings,
)
from common.db.applications import Application
from common.db.ca_ledger import LimitReached, Limits
from common.db.certificates import InService
from common.db.domains import Domain
from common.db.edge_nodes import EdgeNode, UnreachedOrigin
from common.db.orders import OrderState
from common.db.own_certificates import OwnCertificate
from common.db.policies import Policy
from common.db.target_sightings import TargetSighting
from common.dns import Outcome, Pass
from common.edge_probe import HttpEdgeProbe, Reached
from common.enrolment.delegations import CnameRecord
from common.enrolment.eligibility import EligibilityFindings, host_to_ask
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict
from common.enrolment.request import cname_target_of
from common.liveness import Reach, await_edges
from common.logs import get_logger
from common.names import DomainName
from common.settings import Settings

_log = get_logger("api.services.diagnosis")

_RECHECK_PAUSE_SECONDS = 10.0
LONGEST_SECONDS = 9.0  # a pass of questions, and a probe at its end
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record as the DNS has it, or should have it."""

    type: str
    host: str
    value: str


@dataclass(frozen=True, slots=True)
class Dns:
    """`findings` are those of eligibility; `target_*` is step one, the partner's part, which a root does without."""

    findings: EligibilityFindings
    expected: tuple[SeenRecord, ...]
    found: tuple[SeenRecord, ...]
    target_expected: tuple[SeenRecord, ...]
    target_found: tuple[SeenRecord, ...]
    reached: Reached
    sighting: TargetSighting | None = None  # of the cname target, by monitors


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whether the application may have the name, and what would prove it the application's."""

    verdict: OwnershipVerdict
    claim: OwnershipClaim | None
    application_id: str
    cname_target: str
    is_outranked: bool = False  # `OwnershipEvidence.is_outranked`
    delegation: CnameRecord | None = None  # None where no label was made for the name
    is_delegated: bool = False  # the DNS has that record


@dataclass(frozen=True, slots=True)
class Caa:
    """`forbids`: no CA that we use may issue, as far as we know what they call themselves."""

    authorization: caa.Authorization
    authorities: tuple[str, ...]
    forbids: bool


@dataclass(frozen=True, slots=True)
class DomainHolding:
    """What the application has of the name.

    `certificate` is ours, served or standing by beside the application's `own`. `full`: the CA's limit that leaves no
    room for an order now. `policy`: what an operator has every request answered. `serial`: of the certificate that
    visitors should get; `served_at`: the edges, and whether each has that one.
    """

    domains: tuple[Domain, ...]
    certificate: InService | None
    order: OrderState | None
    full: LimitReached | None
    policy: Policy | None = None
    own: OwnCertificate | None = None
    serial: str | None = None
    served_at: tuple[tuple[EdgeNode, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Nodes:
    """The edges, and whether a monitor obtains certificates now."""

    is_issuing: bool
    edges: Reach


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A part that is None could not be looked at."""

    name: DomainName
    uses_acme: bool
    dns: Dns | None
    caa: Caa | None
    holding: DomainHolding | None
    nodes: Nodes | None
    origin: OriginState | None
    """None where the domain has no origin: it is not enrolled, or sends visitors elsewhere."""
    ownership: Ownership | None = None
    unreached: tuple[UnreachedOrigin, ...] | None = ()
    """The edges that could not connect to the origin in the last minute, or had no valid answer from it."""


@dataclass(frozen=True, slots=True)
class DiagnosisService:
    """Diagnoses domains. One instance per process."""

    enrolment: EnrolmentService
    probe: HttpEdgeProbe
    origins: OriginStates
    settings: Settings

    async def diagnose(self, application: Application, name: DomainName) -> Diagnosis:
        """Return what can be observed of a domain, for an application."""
        uses_acme = self.settings.issuer == "acme"
        held = await _part("enrolments", lambda: self.enrolment.held(name))
        if held is None:
            authorization, nodes = await asyncio.gather(
                _part("caa", lambda: self._look_at_caa(application, name)), _part("nodes", self._look_at_nodes)
            )
            return Diagnosis(name, uses_acme, None, authorization, None, nodes, None, unreached=None)
        looked, authorization, (holding, origin, unreached), nodes = await asyncio.gather(
            _part("dns", lambda: self._look_at_dns(application, name, held)),
            _part("caa", lambda: self._look_at_caa(application, name)),
            self._look_at_holding_and_origin(application, name, held),
            _part("nodes", self._look_at_nodes),
        )
        dns, ownership = looked or (None, None)
        if dns and holding and dns.findings.is_eligible and any(each.departed_at for each in holding.domains):
            await _part("recheck", lambda: self._request_recheck(application, name))
            holding = await _part("holding", lambda: self._look_at_holding_again(application, name))
        return Diagnosis(name, uses_acme, dns, authorization, holding, nodes, origin, ownership, unreached)

    async def _request_recheck(self, application: Application, name: DomainName) -> None:
        async with self.enrolment.database.transaction() as connection:
            await self.enrolment.request_recheck(connection, name, application, pause_seconds=_RECHECK_PAUSE_SECONDS)

    async def _look_at_dns(
        self, application: Application, name: DomainName, held: Sequence[Domain]
    ) -> tuple[Dns, Ownership]:
        targets = _targets(application, held)
        async with self.enrolment.resolver.open_pass(application.id) as questions:
            reached = await self.probe.find(questions, host_to_ask(name))
            target, findings = await self._best(questions, name, targets)
            assessment = await self.enrolment.assess(application, name, target, within=questions, findings=findings)
            evidence = assessment.evidence
            delegations = self.enrolment.claims.delegations
            delegate = await delegations(questions.ask_confirmed, name.text)
            ownership = Ownership(
                assessment.verdict,
                evidence.claim,
                application.id,
                target,
                evidence.is_outranked,
                await delegations.find_record(
                    name.text,
                    application.id,
                    makes_label=name.is_wildcard or any(e.application_id == application.id for e in held),
                ),
                is_delegated=delegate.application_id == application.id,
            )
            if evidence.claim in (OwnershipClaim.TXT, OwnershipClaim.DELEGATION) and findings.leads_here:
                findings = replace(findings, claim=evidence.claim)
            dns = Dns(
                findings,
                self._expected(name, target),
                self._shown(await _records(questions, name.text)),
                self._target_expected(name, target),
                () if name.is_root else self._shown(await _records(questions, target)),
                reached,
                None if name.is_root else await self._find_sighting(application, target),
            )
            return dns, ownership

    async def _find_sighting(self, application: Application, target: str) -> TargetSighting | None:
        async with self.enrolment.database.connection() as connection:
            seen = await target_sightings.find(connection, application.id)
        return next((each for each in seen if each.target == target), None)

    def _shown(self, found: Sequence[SeenRecord]) -> tuple[SeenRecord, ...]:
        """Leave out private addresses, which only the operator's resolver may know: a tenant may ask about any name."""
        values = hide_private([seen.value for seen in found], known=self.enrolment.service_targets.service_servers)
        return tuple(replace(seen, value=value) for seen, value in zip(found, values, strict=True))

    async def _best(self, questions: Pass, name: DomainName, targets: list[str]) -> tuple[str, EligibilityFindings]:
        """Return the target that the domain leads to; the first where it leads to none."""
        found = [(target, await self.enrolment.find_eligibility(name, target, within=questions)) for target in targets]
        return next((each for each in found if each[1].is_pointed), found[0])

    def _expected(self, name: DomainName, target: str) -> tuple[SeenRecord, ...]:
        if not name.is_root:
            return (SeenRecord("CNAME", name.text, target),)
        addresses = sorted(self.enrolment.service_targets.service_servers)
        return tuple(SeenRecord("AAAA" if ":" in address else "A", name.text, address) for address in addresses)

    def _target_expected(self, name: DomainName, target: str) -> tuple[SeenRecord, ...]:
        if name.is_root:
            return ()
        return tuple(SeenRecord("CNAME", target, place) for place in sorted(self.enrolment.service_targets.targets))

    async def _look_at_caa(self, application: Application, name: DomainName) -> Caa:
        async with self.enrolment.resolver.open_pass() as questions:
            authorization = await caa.find_authorization(questions, name.text)
        identities = await find_identities(self.enrolment.database, self.settings)
        return Caa(
            authorization,
            tuple(caa.list_allowed_cas(authorization)),
            forbids=not application.is_test
            and not any(
                caa.may_issue(authorization.records, *each, is_wildcards=authorization.is_wildcards)
                for each in identities
            ),
        )

    async def _look_at_holding_again(self, application: Application, name: DomainName) -> DomainHolding:
        return await self._look_at_holding(application, name, await self.enrolment.held(name))

    async def _look_at_holding(self, application: Application, name: DomainName, held: list[Domain]) -> DomainHolding:
        if not held or is_foreign(held, application):
            return DomainHolding((), None, None, None)
        async with self.enrolment.database.connection() as connection:
            order = await orders.describe(connection, name.text)
            full = None
            if (
                order is not None
                and order.state != "issued"
                and self.settings.acme_directory
                and not application.is_test
            ):
                issuer = order.placed_issuer or self.settings.acme_directory[0]
                full = await ca_ledger.next_slot(
                    connection, issuer, name.text, application.id, Limits.of(self.settings)
                )
            policy = await policies.find_in_force(connection, name.text, application.id)
            ours = await certificates.describe(connection, name.text)
            own = await own_certificates.find(connection, name.text)
            serial = own.serial if own is not None else None if ours is None else ours.serial
            identity, _ = await feed.read_version(connection)
            reach = await edge_nodes.find_certificate_reach(connection, name.text, identity)
            return DomainHolding(tuple(held), ours, order, full, policy, own, serial, tuple(reach))

    async def _look_at_holding_and_origin(
        self, application: Application, name: DomainName, held: list[Domain]
    ) -> tuple[DomainHolding | None, OriginState | None, tuple[UnreachedOrigin, ...] | None]:
        holding = await _part("holding", lambda: self._look_at_holding(application, name, held))
        url = _origin_url(holding) if holding is not None else None
        if url is None:
            return holding, None, ()
        unreached = await _part("unreached", lambda: self._look_at_unreached(application, url))
        origin = await _part("origin", lambda: self.origins.find(application, name.visited_host, url))
        return holding, origin or OriginState(url, "unknown", words="it could not be asked"), unreached

    async def _look_at_unreached(self, application: Application, url: str) -> tuple[UnreachedOrigin, ...]:
        async with self.enrolment.database.connection() as connection:
            return tuple(await edge_nodes.find_unreached(connection, identity_of(application, url)))

    async def _look_at_nodes(self) -> Nodes:
        database = self.enrolment.database
        async with database.connection() as connection:
            is_issuing = await monitor_nodes.is_issuing(connection)
        edges = await await_edges(database, self.enrolment.clock, within_seconds=EDGES_WITHIN_SECONDS)
        return Nodes(is_issuing, edges)


async def _records(questions: Pass, name: str) -> tuple[SeenRecord, ...]:
    """Return the CNAMEs from `name` on, and the addresses where they end."""
    seen: list[SeenRecord] = []
    chain = await questions.follow_confirmed(name, ())
    owner = name
    for value in chain.names:
        seen.append(SeenRecord("CNAME", owner, value))
        owner = value
    if chain.end is Outcome.NO_NAME:
        return tuple(seen)
    seen += [SeenRecord("A", owner, value) for value in (await questions.ask_confirmed(owner, "A")).values]
    seen += [SeenRecord("AAAA", owner, value) for value in (await questions.ask_confirmed(owner, "AAAA")).values]
    return tuple(seen)


def _targets(application: Application, held: Sequence[Domain]) -> list[str]:
    """Return what the domain may lead to.

    That is Power's target where Power has it, Secure's own where only Secure has, else either.
    """
    products = {domain.product for domain in held if domain.application_id == application.id}
    if "power" in products:
        return [application.cname_target]
    if "secure" in products:
        return [cname_target_of(application, "secure")]
    return list(dict.fromkeys([application.cname_target, cname_target_of(application, "secure")]))


def _origin_url(holding: DomainHolding) -> str | None:
    """Return where visitors' requests go: Power's route wins over Secure's."""
    served = sorted(holding.domains, key=lambda domain: domain.product)
    if not served or served[0].redirect_to is not None:
        return None
    return served[0].application_url or None


async def _part(of: str, look: Callable[[], Awaitable[_T]]) -> _T | None:
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await look()
    except Exception as error:  # noqa: BLE001 - the root of a part: what cannot be seen is unknown
        _log.warning("part of a diagnosis unknown", part=of, error=type(error).__name__)
        return None
