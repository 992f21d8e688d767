"""Reads a zone: asks the servers of a domain's zone and of the zone above, and returns their answers as a zone view.

Rules
    what decides comes from zones' own servers (`common.dns.authoritative`); resolvers find those servers, and answer
        about other zones (records that SPF includes, targets of CNAMEs)
    all questions of a round are asked at once. A name that is to have a CNAME or a zone cut is asked about all types in
        a second round, if the first has not shown that it does not exist (RFC 8020 §2), is an alias, or another zone's
    of any other name, the answer about another type shows whether it is an alias (RFC 1034 §3.6.2)
    whether a wildcard answered, two more questions tell: a wildcard also answers for a name below, which a name of its
        own would end (RFC 4592 §3.3.1), and the wildcard itself has the same records
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from common.dns import Answer, Chain, Outcome, Pass
from common.dns.authoritative import Authoritative, combine
from common.domain_check import spf
from common.domain_check.conflicts import hosts_concerned
from common.domain_check.zone_view import HostView, ZoneView
from common.records import Record, RecordType, normal_name, normal_value, owner_name

MOST_RECORDS = 100
"""Most records in one check: far more than an application asks a customer to set, and a bound on its questions."""

_MOST_QUESTIONS = 4000
_MOST_INCLUDED = 40  # names that SPF records include: more than ten are an error
_FIRST: frozenset[RecordType] = frozenset({"A", "CNAME", "NS"})  # these tell whether there can be others
_BESIDE_CNAME: frozenset[RecordType] = _FIRST | {"AAAA", "MX", "TXT", "SRV", "CAA", "PTR"}
_ADDRESSES: tuple[RecordType, ...] = ("A", "AAAA")
_PROBE_LABEL = "frontage-wildcard-probe"

Types = dict[str, set[RecordType]]
"""Record types to ask for, by absolute name."""


async def read_zone(
    questions: Pass, apex: str, requested: Sequence[Record] = (), *, certificate_hosts: Collection[str] = ()
) -> ZoneView:
    """Read a zone: its servers, and the hosts that conflicts with `requested` depend on.

    `requested`: the hosts of these records, at most `MOST_RECORDS`, are read as `find_conflicts` needs them.
    `certificate_hosts`: absolute names whose CAA records are read too, up to the apex.
    """
    zone = questions.zone_questions(_MOST_QUESTIONS, apex)
    if not requested and not certificate_hosts:
        return ZoneView(apex, *await _read_servers(zone, apex))
    types = types_to_ask(requested, apex, certificate_hosts)
    servers, hosts, included, targets = await asyncio.gather(
        _read_servers(zone, apex),
        _read_hosts(zone, apex, types),
        _read_requested_spf(questions, requested),
        _read_targets(questions, apex, requested),
    )
    chains, addresses = targets
    texts = [value for host in hosts.values() for value in host.values("TXT")] if included is not None else []
    spf_texts = await _read_included(questions, texts, included or {})
    return ZoneView(apex, *servers, hosts, spf_texts, chains, addresses)


def types_to_ask(requested: Iterable[Record], apex: str, certificate_hosts: Iterable[str] = ()) -> Types:
    """Decide which record types of which names are asked for.

    Per name: its zone cut; what it has of the requested types, or of all types where a CNAME or a zone cut is
    requested; a CNAME; and CAA records on the way from a certificate's host to the apex.
    """
    requested = list(requested)
    types: Types = {name: {"NS"} for name in hosts_concerned(requested, apex)}
    for record in requested:
        of_name = types.setdefault(owner_name(record, apex), set())
        of_name |= _BESIDE_CNAME if record.type in ("CNAME", "NS") else {record.type, "CNAME"}
    for host in certificate_hosts:
        name = host
        while name == apex or name.endswith(f".{apex}"):
            types.setdefault(name, set()).add("CAA")
            name = name.partition(".")[2]
    return types


async def _read_servers(zone: Authoritative, apex: str) -> tuple[Answer, Answer, Answer]:
    """Ask for the delegation, and the zone's own NS and SOA."""
    delegation, name_servers, soa = await asyncio.gather(
        zone.ask_parent(apex), zone.ask(apex, "NS"), zone.ask(apex, "SOA")
    )
    return delegation, name_servers, soa


async def _read_hosts(zone: Authoritative, apex: str, types: Types) -> Mapping[str, HostView]:
    first = {name: kinds & _FIRST if kinds >= _BESIDE_CNAME else _without_alias(kinds) for name, kinds in types.items()}
    by_name = await _ask_all(zone, apex, first)
    for name, found in by_name.items():
        if "CNAME" in types[name] - found.keys():
            found["CNAME"] = _alias_of(answer for kind, answer in found.items() if kind != "NS")
    rest = {name: types[name] - found.keys() for name, found in by_name.items()}
    for name, absent in ((name, _absence(by_name[name], name == apex)) for name in list(rest)):
        if absent is not None:
            by_name[name] |= dict.fromkeys(rest.pop(name), absent)
    for name, found in (await _ask_all(zone, apex, rest)).items():
        by_name[name] |= found
    cuts = {name: found["NS"].values for name, found in by_name.items() if name != apex and _has_cut(found)}
    hosts = [_below_cut(HostView(name, found), cuts) for name, found in by_name.items()]
    return {host.name: host for host in await asyncio.gather(*(_mark_wildcard(zone, apex, host) for host in hosts))}


def _without_alias(kinds: set[RecordType]) -> set[RecordType]:
    """Leave out the question about a CNAME where another one shows it; that about a zone cut does not."""
    return kinds - {"CNAME"} if kinds - {"CNAME", "NS"} else kinds


def _alias_of(answers: Iterable[Answer]) -> Answer:
    """Return what answers about other types of a name show of its CNAME."""
    found = list(answers)
    known = [
        Answer(Outcome.RECORDS, answer.aliases, answer.is_disputed, answer.ttl_seconds)
        if answer.aliases
        else Answer(Outcome.NO_DATA if answer.values else answer.outcome)
        for answer in found
        if answer.outcome.is_known
    ]
    return combine(known or found)


async def _ask_all(zone: Authoritative, apex: str, types: Types) -> dict[str, dict[RecordType, Answer]]:
    wanted = [(name, kind) for name, kinds in types.items() for kind in sorted(kinds)]
    answers = await asyncio.gather(*(_ask(zone, apex, name, kind) for name, kind in wanted))
    by_name: dict[str, dict[RecordType, Answer]] = {name: {} for name in types}
    for (name, kind), answer in zip(wanted, answers, strict=True):
        by_name[name][kind] = answer
    return by_name


def _absence(found: Mapping[RecordType, Answer], is_apex: bool) -> Answer | None:
    """Return the answer to every other type, where these answers show it."""
    if not is_apex and _has_cut(found):
        return Answer(Outcome.NO_DATA)
    if "CNAME" in found and found["CNAME"].values:
        return Answer(Outcome.NO_DATA)
    own = [answer.outcome for kind, answer in found.items() if kind != "NS"]
    return Answer(Outcome.NO_NAME) if own and set(own) == {Outcome.NO_NAME} else None


def _ask(zone: Authoritative, apex: str, name: str, kind: RecordType) -> Awaitable[Answer]:
    """Ask about one name; the NS records of a name below the apex are its delegation, which the zone above knows."""
    return zone.ask_parent(name) if kind == "NS" and name != apex else zone.ask(name, kind)


def _has_cut(found: Mapping[RecordType, Answer]) -> bool:
    return "NS" in found and bool(found["NS"].values)


def _below_cut(host: HostView, cuts: Mapping[str, tuple[str, ...]]) -> HostView:
    """Return the host with the zone cut that is closest to the apex."""
    above = [cut for cut in cuts if host.name == cut or host.name.endswith(f".{cut}")]
    cut = min(above, key=len, default=None)
    return host if cut is None else replace(host, zone_cut=cut, delegated_to=cuts[cut])


async def _mark_wildcard(zone: Authoritative, apex: str, host: HostView) -> HostView:
    has = [kind for kind, answer in host.answers.items() if answer.values and kind != "NS"]
    if not has or host.name == apex or host.zone_cut is not None or host.name.startswith("*."):
        return host
    kind, values = has[0], set(host.answer(has[0]).values)
    below = await zone.ask(f"{_PROBE_LABEL}.{host.name}", kind)
    if set(below.values) != values:
        return host
    candidates = [f"*.{name}" for name in _names_above(host.name, apex)]
    answers = await asyncio.gather(*(zone.ask(name, kind) for name in candidates))
    # The highest: a wildcard also answers for the names of those below it.
    found = [name for name, answer in zip(candidates, answers, strict=True) if set(answer.values) == values]
    return replace(host, wildcard=found[-1]) if found else host


def _names_above(name: str, apex: str) -> list[str]:
    names = []
    while name != apex:
        name = name.partition(".")[2]
        names.append(name)
    return names


async def _read_targets(
    questions: Pass, apex: str, requested: Iterable[Record]
) -> tuple[Mapping[str, Chain], Mapping[str, frozenset[str]]]:
    """Find where targets of requested CNAMEs lead, and the addresses of those at the apex."""
    aliases = [record for record in requested if record.type == "CNAME"]
    targets = list(dict.fromkeys(normal_name(record.value) for record in aliases))
    at_apex = list({normal_name(record.value) for record in aliases if owner_name(record, apex) == apex})
    chains, addresses = await asyncio.gather(
        asyncio.gather(*(questions.follow(target, ()) for target in targets)),
        asyncio.gather(*(_addresses(questions, target) for target in at_apex)),
    )
    return dict(zip(targets, chains, strict=True)), dict(zip(at_apex, addresses, strict=True))


async def _addresses(questions: Pass, name: str) -> frozenset[str]:
    answers = await asyncio.gather(*(questions.ask(name, kind) for kind in _ADDRESSES))
    return frozenset(value for answer in answers for value in answer.values)


async def _read_requested_spf(questions: Pass, requested: Iterable[Record]) -> dict[str, Answer] | None:
    """Read what the requested SPF records include; None if there are no such records."""
    texts = [normal_value("TXT", record.value) for record in requested if record.type == "TXT"]
    if not any(map(spf.is_spf, texts)):
        return None
    return await _read_included(questions, texts, {})


async def _read_included(questions: Pass, texts: Iterable[str], known: dict[str, Answer]) -> dict[str, Answer]:
    """Read the TXT records of all names that SPF records among `texts` include, directly or not."""
    found, texts = dict(known), list(texts)
    while True:
        names = {name for text in texts if spf.is_spf(text) for name in spf.included_names(text)} - found.keys()
        if not names or len(found) + len(names) > _MOST_INCLUDED:
            return found
        ordered = sorted(names)
        answers = await asyncio.gather(*(questions.ask(name, "TXT") for name in ordered))
        found |= dict(zip(ordered, answers, strict=True))
        texts = [value for answer in answers for value in answer.values]


def unknown_outcome(view: ZoneView) -> Outcome | None:
    """Return why nothing can be said of the zone, or None if its servers and the parent's have answered."""
    if not view.delegation.outcome.is_known:
        return view.delegation.outcome
    if view.delegation.outcome is Outcome.NO_NAME:
        return None
    answers = (
        view.name_servers,
        view.soa,
        *(answer for host in view.hosts.values() for answer in _deciding_answers(host)),
    )
    return next((answer.outcome for answer in answers if not answer.outcome.is_known), None)


def _deciding_answers(host: HostView) -> Iterable[Answer]:
    """Return the answers that decide about a host: below a zone cut none, because the delegation decides."""
    return () if host.zone_cut is not None else host.answers.values()
