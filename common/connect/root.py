"""The root of a domain: which records lead it here at its provider.

Rules
    a root has NS and SOA records, so no CNAME can stand there (RFC 1034 §3.6.2): one that serves a product becomes A
        records of our servers
    unless the provider takes a CNAME there, and answers with the addresses of its target (flattening): it stays, as it
        follows our servers when their addresses change
    any other CNAME at the root blocks the plan; nothing is removed for its sake
    of our servers' addresses, a root gets as many as its provider takes, which the table of providers states, or else
        the zone shows: a root that has one of our addresses, and no others, leads to us
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from common.connect.plan import Values
from common.dns import Answer, Outcome
from common.domain_check.providers import Capabilities
from common.domain_check.zone_view import ZoneView
from common.flows.plan import JournalEntry
from common.flows.requested import Requested
from common.records import RecordType, normal_name, normal_value

ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")


def fit_root(
    requested: Sequence[Requested], apex: str, capabilities: Capabilities, service_servers: Sequence[str]
) -> tuple[Requested, ...]:
    """Return the records as the provider can hold them.

    `service_servers`: addresses of ours, as `ipaddress` writes them.
    """
    fitted: list[Requested] = []
    taken: dict[str, set[str]] = {kind: set() for kind in ADDRESS_TYPES}
    for each in requested:
        for record in _without_cname(each, apex, capabilities, service_servers):
            kind, value = record.record.type, normal_value(record.record.type, record.record.value)
            if record.name(apex) != apex or value not in service_servers:
                fitted.append(record)
            elif value not in taken[kind] and len(taken[kind]) < capabilities.most_root_addresses:
                taken[kind].add(value)
                fitted.append(record)
    return tuple(fitted)


def _without_cname(
    each: Requested, apex: str, capabilities: Capabilities, service_servers: Sequence[str]
) -> Iterable[Requested]:
    if not _is_root_cname(each, apex) or capabilities.root_cname or each.purpose.product is None:
        return [each]
    addresses = [address for address in service_servers if ":" not in address]
    return [replace(each, record=replace(each.record, type="A", value=address)) for address in addresses] or [each]


def find_spare(
    requested: Sequence[Requested], apex: str, is_present: Sequence[bool], service_servers: Sequence[str]
) -> frozenset[int]:
    """Return the positions of our addresses that a root lacks while it has another of their family."""
    ours = {
        number: each.record.type
        for number, each in enumerate(requested)
        if each.purpose.product is not None and _is_ours_at_root(each, apex, service_servers)
    }
    there = {kind for number, kind in ours.items() if is_present[number]}
    return frozenset(number for number, kind in ours.items() if kind in there and not is_present[number])


def _is_ours_at_root(each: Requested, apex: str, service_servers: Sequence[str]) -> bool:
    record = each.record
    is_address = record.type in ADDRESS_TYPES and normal_value(record.type, record.value) in service_servers
    return is_address and each.name(apex) == apex


def accept_fewer_addresses(
    journal: Iterable[JournalEntry], now: Values, apex: str, service_servers: Sequence[str]
) -> tuple[JournalEntry, ...]:
    """Count a root as written where the provider took only some of our addresses.

    `journal` is read back, of a write that the provider took. The root's entry gets the addresses that it has.
    """

    def accept(entry: JournalEntry) -> JournalEntry:
        change, there = entry.change, now.get(entry.change.key, frozenset())
        is_root = change.name == apex and change.type in ADDRESS_TYPES
        if not is_root or not there or not there <= frozenset(service_servers).intersection(change.after):
            return entry
        return replace(entry, change=replace(change, after=tuple(sorted(there))), status="written")

    return tuple(map(accept, journal))


def find_root_cname(requested: Iterable[Requested], apex: str) -> Requested | None:
    """Return the CNAME that is requested at the root, if any."""
    return next((each for each in requested if _is_root_cname(each, apex)), None)


def _is_root_cname(each: Requested, apex: str) -> bool:
    return each.record.type == "CNAME" and each.name(apex) == apex


def see_through_flattening(view: ZoneView, requested: Iterable[Requested]) -> ZoneView:
    """Return the zone with its root's CNAME, where the provider answers with its target's addresses instead."""
    alias = find_root_cname(requested, view.apex)
    if alias is None:
        return view
    host, target = view.host(view.apex), normal_name(alias.record.value)
    here = {kind: frozenset(host.values(kind)) for kind in ADDRESS_TYPES}
    if host.values("CNAME") or not are_of_target(here, view.addresses.get(target, frozenset())):
        return view
    shown: dict[RecordType, Answer] = {kind: Answer(Outcome.NO_DATA) for kind in ADDRESS_TYPES}
    shown["CNAME"] = Answer(Outcome.RECORDS, (target,), ttl_seconds=max(host.answer(each).ttl_seconds for each in here))
    return replace(view, hosts=dict(view.hosts) | {view.apex: replace(host, answers=dict(host.answers) | shown)})


def are_of_target(here: Mapping[RecordType, frozenset[str]], target: frozenset[str]) -> bool:
    """Return whether a root has addresses, and only such as the target of its CNAME has."""
    found = frozenset[str]().union(*here.values())
    return bool(found) and found <= target
