"""Inspects a flow's zone: its records, the plan for it, and the ways to write into it. Asks the DNS, writes nothing.

The monitor inspects the zone when a flow begins; the request that applies or takes back a plan inspects it again, right
before it writes, and reads the written sets back afterwards: "written" is what the zone's own servers have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.connect.domain_connect.discovery import Closed, Discovered
from common.connect.domain_connect.offer import decide_offer
from common.connect.domain_connect.templates import fill_templates
from common.connect.plan import Values, make_plan, with_merged
from common.connect.rights import Vouches
from common.connect.root import ADDRESS_TYPES, are_of_target, find_root_cname, fit_root, see_through_flattening
from common.connect.ways.offers import Offers, find_offers
from common.dns import Answer, Authoritative, Outcome, Pass, Resolver
from common.domain_check.conflicts import NO_CERTIFICATES, CertificateNeeds, Conflict, find_conflicts
from common.domain_check.providers import CAREFUL, Provider, find_provider
from common.domain_check.reading import read_zone
from common.domain_check.zone_view import ZoneView
from common.errors import FrontageError
from common.flows.handover import FlowProblem
from common.flows.inspection import ALL_DONE, FlowInspection, FoundConflict, FoundProvider, InspectionSteps
from common.flows.plan import Plan, SetKey
from common.flows.requested import Requested
from common.records import Record, RecordType, normal_name

READ_BACK_SECONDS = 12.0
_READ_BACK_PAUSE_SECONDS = 0.5

Note = Callable[[InspectionSteps], Awaitable[None]]
"""Called with the state of each step whenever one changes."""


Discover = Callable[[Pass, str, Sequence[str]], Awaitable[Discovered | Closed | None]]
"""`common.connect.domain_connect.discovery`."""


class CouldNotInspect(FrontageError):
    """The zone could not be inspected; in words for a person, with a code for programs."""

    def __init__(self, code: str, words: str, hint: str) -> None:
        super().__init__(words)
        self.code = code
        self.hint = hint

    def as_problem(self) -> FlowProblem:
        """Return the problem as the flow stores and shows it."""
        return FlowProblem(self.code, str(self), self.hint)


@dataclass(frozen=True, slots=True)
class ZoneInspection:
    """What an inspection of a zone has found.

    `view`: the zone as it was at one moment.
    """

    view: ZoneView
    provider: Provider
    conflicts: tuple[Conflict, ...]
    plan: Plan
    offers: Offers
    requested: tuple[Requested, ...]
    """As they are once the plan is written."""

    def found(self) -> FlowInspection:
        """Return what the flow keeps of the inspection."""
        name = self.provider.name if self.provider.is_known else self.offers.provider_name or self.provider.name
        soa = self.view.soa.values
        return FlowInspection(
            ALL_DONE,
            FoundProvider(
                self.provider.id,
                name,
                self.provider.help_url,
                self.offers.setup_type,
                self.offers.domain_connect_state,
            ),
            self.offers.ways,
            tuple(map(_found_conflict, self.conflicts)) or None,
            soa[0].split()[0] if soa else None,
        )


def _found_conflict(conflict: Conflict) -> FoundConflict:
    record = conflict.record
    return FoundConflict(
        record.host, record.type, record.value, record.priority, conflict.rule, conflict.reason, conflict.suggested
    )


async def inspect_zone(
    resolver: Resolver,
    apex: str,
    requested: Sequence[Requested],
    *,
    tenant: str = "",
    note: Note | None = None,
    certificates: CertificateNeeds = NO_CERTIFICATES,
    discover: Discover | None = None,
    service_servers: Sequence[str] = (),
    vouches: Vouches = lambda _: True,
) -> ZoneInspection:
    """Inspect a zone, make the plan for `requested`, and find the ways to write it.

    `vouches`: for which records our name may stand at a Domain Connect provider.

    Raises: `CouldNotInspect`.
    """
    note = note or _ignore_steps
    await note(InspectionSteps("running", "running", "waiting"))
    async with resolver.open_pass(tenant) as questions:
        view, discovered = await asyncio.gather(
            read_zone(questions, apex, _records_to_read(requested), certificate_hosts=certificates.hosts),
            (discover or _skip_discovery)(questions, apex, _expressing_services(requested, apex, service_servers)),
        )
    _refuse_unknown(view, requested)
    await note(InspectionSteps("done", "done", "running"))
    soa = view.soa.values[0] if view.soa.values else ""
    provider = find_provider(view.server_names, soa)
    can = provider.capabilities
    requested = fit_root(requested, apex, can, service_servers)
    view = see_through_flattening(view, requested) if can.root_cname else view
    blocking = None if can.root_cname else find_root_cname(requested, apex)
    planned = [each for each in requested if each is not blocking]
    records = [each.record for each in planned]
    conflicts = tuple(find_conflicts(records, view, flattens_apex=can.root_cname, certificates=certificates))
    plan = make_plan(planned, view, conflicts, blocked=[] if blocking is None else [_no_root_cname(blocking, provider)])
    written = with_merged(requested, plan, apex)
    offers = find_offers(provider, view, written, decide_offer(discovered, written, plan, view, vouches))
    return ZoneInspection(view, provider, conflicts, plan, offers, written)


def _expressing_services(requested: Sequence[Requested], apex: str, service_servers: Sequence[str]) -> list[str]:
    """Return the templates that express the records as they are, or as they are where a root takes no CNAME."""
    fitted = fit_root(requested, apex, CAREFUL, service_servers)
    found = [*fill_templates(requested, apex), *fill_templates(fitted, apex)]
    return list(dict.fromkeys(each.service for each in found))


def _no_root_cname(each: Requested, provider: Provider) -> str:
    return f"{provider.name} takes no CNAME to {normal_name(each.record.value)} at the root of a domain."


async def _ignore_steps(_: InspectionSteps) -> None:
    return None


async def _skip_discovery(_: Pass, __: str, ___: Sequence[str]) -> None:
    return None


def _records_to_read(requested: Sequence[Requested]) -> list[Record]:
    """Return the records to read: where a name gets addresses of ours, both families count."""
    records = [each.record for each in requested]
    others: list[Record] = []
    for each in requested:
        if each.record.type in ("A", "AAAA") and each.purpose.product is not None:
            others.append(replace(each.record, type="AAAA" if each.record.type == "A" else "A"))
    return [*records, *others]


def _refuse_unknown(view: ZoneView, requested: Sequence[Requested]) -> None:
    """Refuse a zone that is not there, or whose servers could not be asked.

    Raises: `CouldNotInspect`.
    """
    if view.delegation.outcome is Outcome.NO_NAME:
        raise CouldNotInspect(
            Outcome.NO_NAME,
            f"{view.apex} is not registered, or has no name servers.",
            "Check the spelling; a domain that was registered a moment ago takes a while to appear.",
        )
    hosts = [view.host(each.name(view.apex)) for each in requested]
    answers = [answer for host in hosts for answer in host.answers.values()]
    unknown = next((answer.outcome for answer in answers if not answer.outcome.is_known), None)
    if unknown is not None:
        raise CouldNotInspect(
            unknown,
            f"The name servers of {view.apex} could not be asked about all records.",
            "Try again in a moment; if it stays like this, the name servers of the domain need mending.",
        )


async def read_sets(
    resolver: Resolver, keys: Collection[SetKey], *, tenant: str = "", alias: tuple[str, str] | None = None
) -> Values:
    """Read what the zone's own servers have of these record sets now.

    A set that could not be read, or about which the servers disagree, is missing. `alias`: the name and the target
    of a CNAME at the root, which a provider may answer by addresses.
    """
    async with resolver.open_pass(tenant) as questions:
        zone = questions.zone_questions(len(keys) * 8 + 32)
        answers = await asyncio.gather(*(zone.ask(name, kind) for name, kind in keys))
        now = {key: frozenset(answer.values) for key, answer in zip(keys, answers, strict=True) if _is_certain(answer)}
        if alias is None or now.get((alias[0], "CNAME")) != frozenset():
            return now
        return {**now, **await _read_flattened(questions, zone, now, *alias)}


async def _read_flattened(questions: Pass, zone: Authoritative, now: Values, name: str, target: str) -> Values:
    """Return the sets of a root as its CNAME makes them, where its addresses are those of the target."""
    here, there = await asyncio.gather(
        asyncio.gather(*(zone.ask(name, kind) for kind in ADDRESS_TYPES)),
        asyncio.gather(*(questions.ask(target, kind) for kind in ADDRESS_TYPES)),
    )
    addresses = {kind: frozenset(answer.values) for kind, answer in zip(ADDRESS_TYPES, here, strict=True)}
    if not are_of_target(addresses, frozenset(value for answer in there for value in answer.values)):
        return {}
    seen: dict[SetKey, frozenset[str]] = {(name, "CNAME"): frozenset({target})}
    return seen | {(name, kind): frozenset() for kind in ADDRESS_TYPES if (name, kind) in now}


def _is_certain(answer: Answer) -> bool:
    return answer.outcome.is_known and not answer.is_disputed


async def read_back(
    resolver: Resolver,
    wanted: Mapping[SetKey, frozenset[str]],
    *,
    tenant: str = "",
    within_seconds: float = READ_BACK_SECONDS,
    alias: tuple[str, str] | None = None,
) -> Values:
    """Read the sets again and again until every one is as wanted, or the time is over: providers take a moment."""
    ends_at = asyncio.get_running_loop().time() + within_seconds
    while True:
        now = await read_sets(resolver, [*wanted], tenant=tenant, alias=alias)
        if all(now.get(key) == values for key, values in wanted.items()):
            return now
        if asyncio.get_running_loop().time() >= ends_at:
            return now
        await asyncio.sleep(_READ_BACK_PAUSE_SECONDS)


def as_wanted(changes: Iterable[Any]) -> dict[tuple[str, RecordType], frozenset[str]]:
    """Return the values that the sets have once the changes are written."""
    return {change.key: frozenset(change.after) for change in changes}
