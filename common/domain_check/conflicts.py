"""Conflicts: the existing records that stand in the way of requested ones. A zone view brings the answers.

Rules
    a record with the same host, type and purpose, and another value, conflicts. A TXT record's purpose is what stands
        before its first ``=``, a CAA record's its tag: records of different purposes stand beside each other
    a CNAME has its host to itself (RFC 1034 §3.6.2): a requested one conflicts with every other record there, an
        existing one with every requested record. At the apex of a zone whose provider flattens it, it takes the place
        of the addresses only
    of mail servers the whole set counts: whatever the request does not name conflicts
    SPF records merge into one (RFC 7208 §3.2); the conflict suggests the merged text (`common.domain_check.spf`)
    a host below a zone cut is another zone's: the NS records of the cut conflict with what is requested there; a
        requested zone cut conflicts with the records that it would hide
    a CNAME that leads back to the host of the requested one conflicts
    where the CAA records found for a host forbid its certificate, they conflict (RFC 8659 §3)
    identical records never conflict, nor do a wildcard's: a host's own records hide them (RFC 4592 §2.2.1)
    requested records that contradict each other are conflicts of their own
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from common import caa
from common.domain_check import spf
from common.domain_check.zone_view import HostView, ZoneView, existing_record, relative_host
from common.records import (
    APEX,
    Record,
    RecordType,
    identity,
    matches,
    normal_name,
    normal_value,
    owner_name,
)

_ADDRESSES: frozenset[RecordType] = frozenset({"A", "AAAA"})


class Rule(StrEnum):
    """The rule that a conflict breaks; the values are what the API shows as ``code``."""

    OTHER_VALUE = "other_value"
    CNAME_BESIDE = "cname_beside_others"
    EXISTING_CNAME = "existing_cname"
    OTHER_MAIL_SERVER = "other_mail_server"
    SPF = "spf"
    ZONE_CUT = "delegated"
    CNAME_CIRCLE = "cname_circle"
    CAA = "caa"
    REQUEST = "contradictory_request"


@dataclass(frozen=True, slots=True)
class Conflict:
    """An existing record that stands in the way of a requested one.

    `record` is the existing record, its host relative to the apex; with REQUEST, a requested one. `reason` is a
    sentence. `suggested`: the value to publish, in place of an SPF record, or beside a CAA record.
    """

    record: Record
    rule: Rule
    reason: str
    suggested: str | None = None


@dataclass(frozen=True, slots=True)
class CertificateNeeds:
    """The names that are to get a certificate, and the CAs that may issue it.

    `hosts`: absolute names. `identities`: for each CA, its names in CAA records and the URL of our account there;
    one CA that is allowed is enough, and without any none is needed.
    """

    hosts: frozenset[str] = frozenset()
    identities: tuple[tuple[tuple[str, ...], str | None], ...] = ()


NO_CERTIFICATES = CertificateNeeds()


def find_conflicts(
    requested: Sequence[Record],
    view: ZoneView,
    *,
    flattens_apex: bool = False,
    certificates: CertificateNeeds = NO_CERTIFICATES,
) -> list[Conflict]:
    """Return the conflicts in the order of the requested records; each existing record once.

    The view must hold every host that `hosts_concerned` names.
    """
    by_host: dict[str, list[Record]] = {}
    for record in requested:
        by_host.setdefault(owner_name(record, view.apex), []).append(record)
    found: list[Conflict] = []
    for name, records in by_host.items():
        host = _Host(view, view.host(name), records, is_flattened=flattens_apex and name == view.apex)
        found += [*_contradictions(host, by_host), *_host_conflicts(host)]
    found += _certificate_conflicts(by_host, view, certificates)
    return list({identity(each.record): each for each in reversed(found)}.values())[::-1]


def hosts_concerned(requested: Iterable[Record], apex: str) -> list[str]:
    """Return the absolute names whose records decide about conflicts.

    They are those of the requested records, and the names between them and the apex, where a zone cut or CAA
    records may stand.
    """
    names: dict[str, None] = {}
    for record in requested:
        name = owner_name(record, apex)
        while name != apex and name.endswith(f".{apex}"):
            names[name] = None
            name = name.partition(".")[2]
    return [*names, apex]


@dataclass(frozen=True, slots=True)
class _Host:
    """What is there and what is requested at one name.

    `is_flattened`: the name is the apex of a provider that flattens CNAMEs.
    """

    view: ZoneView
    there: HostView
    requested: list[Record]
    is_flattened: bool

    def of_type(self, kind: RecordType) -> list[Record]:
        """Return the requested records of one type."""
        return [record for record in self.requested if record.type == kind]

    def existing(self, kind: RecordType) -> Iterator[tuple[str, Record]]:
        """Yield the existing values of one type, each with its record."""
        for value in self.there.values(kind):
            yield value, self.record(kind, value)

    def record(self, kind: RecordType, value: str) -> Record:
        """Make the record of an existing value."""
        return existing_record(self.view.apex, self.there.name, kind, value, self.there.answer(kind).ttl_seconds)

    @property
    def label(self) -> str:
        """The name relative to the apex, for people."""
        return relative_host(self.there.name, self.view.apex)


def _host_conflicts(host: _Host) -> Iterator[Conflict]:
    below_cut = [record for record in host.requested if not _is_the_cut(record, host.there)]
    if host.there.zone_cut is not None and below_cut:
        yield from _zone_cut_conflicts(host, below_cut)
        return
    yield from _existing_cname_conflicts(host)
    yield from _requested_cname_conflicts(host)
    yield from _requested_cut_conflicts(host)
    for kind in dict.fromkeys(record.type for record in host.requested if record.type != "CNAME"):
        yield from _type_conflicts(host, kind)


def _is_the_cut(record: Record, there: HostView) -> bool:
    return record.type == "NS" and there.zone_cut == there.name


def _zone_cut_conflicts(host: _Host, requested: Sequence[Record]) -> Iterator[Conflict]:
    """Report the name servers of a zone cut above requested records, unless the other zone already has these."""
    if all(matches(record, host.there.answer(record.type).values) for record in requested):
        return
    cut = host.there.zone_cut or ""
    label = relative_host(cut, host.view.apex)
    for server in host.there.delegated_to:
        yield Conflict(
            existing_record(host.view.apex, cut, "NS", server),
            Rule.ZONE_CUT,
            f"{label} is delegated to {server}: records at {host.label} take effect only in that zone.",
        )


def _existing_cname_conflicts(host: _Host) -> Iterator[Conflict]:
    wanted, others = host.of_type("CNAME"), len(host.requested) - len(host.of_type("CNAME"))
    for value, record in host.existing("CNAME"):
        if others:
            reason = f"{host.label} has a CNAME to {value}, and no other record can stand beside it."
            yield Conflict(record, Rule.EXISTING_CNAME, reason)
        elif not any(matches(each, [value]) for each in wanted):
            yield Conflict(record, Rule.OTHER_VALUE, f"{host.label} has a CNAME to {value}, and can have only one.")


def _requested_cname_conflicts(host: _Host) -> Iterator[Conflict]:
    wanted = host.of_type("CNAME")
    if not wanted:
        return
    is_in_place = host.is_flattened and _is_flattened_already(host, wanted)
    for kind in host.there.answers:
        if kind in ("CNAME", "SOA") or (host.is_flattened and (kind not in _ADDRESSES or is_in_place)):
            continue
        for value, record in host.existing(kind):
            reason = f"{host.label} has the {kind} record {value}, and a CNAME cannot stand beside it."
            yield Conflict(record, Rule.CNAME_BESIDE, reason)
    for each in wanted:
        yield from _cname_circle_conflicts(host, normal_name(each.value))


def _is_flattened_already(host: _Host, wanted: Sequence[Record]) -> bool:
    """Return whether the apex has addresses of the CNAME's target, and no others."""
    here = {value for kind in _ADDRESSES for value in host.there.values(kind)}
    there = {address for each in wanted for address in host.view.addresses.get(normal_name(each.value), ())}
    return bool(here) and here <= there


def _cname_circle_conflicts(host: _Host, target: str) -> Iterator[Conflict]:
    chain = host.view.chains.get(target)
    names = (target, *(chain.names if chain else ()))
    if host.there.name not in names[1:]:
        return
    owner = names[names.index(host.there.name, 1) - 1]
    yield Conflict(
        existing_record(host.view.apex, owner, "CNAME", host.there.name),
        Rule.CNAME_CIRCLE,
        f"{target} leads back to {host.there.name}: with the requested CNAME, neither could be resolved.",
    )


def _requested_cut_conflicts(host: _Host) -> Iterator[Conflict]:
    if not host.of_type("NS") or host.there.name == host.view.apex or host.there.zone_cut is not None:
        return
    for kind in host.there.answers:
        if kind in ("NS", "SOA", "CNAME"):
            continue
        for value, record in host.existing(kind):
            reason = f"{host.label} has the {kind} record {value}, which the requested delegation would hide."
            yield Conflict(record, Rule.ZONE_CUT, reason)


def _type_conflicts(host: _Host, kind: RecordType) -> Iterator[Conflict]:
    wanted = host.of_type(kind)
    if kind == "TXT":
        yield from _spf_conflicts(host, wanted)
    purposes = {_purpose(kind, normal_value(kind, record.value)) for record in wanted}
    rule = Rule.OTHER_MAIL_SERVER if kind == "MX" else Rule.OTHER_VALUE
    for value, record in host.existing(kind):
        is_spf = kind == "TXT" and spf.is_spf(value)
        if is_spf or _purpose(kind, value) not in purposes or any(matches(each, [value]) for each in wanted):
            continue
        yield Conflict(
            record, rule, f"{host.label} has {_describe_record(kind)} {value}, which the request does not name."
        )


def _describe_record(kind: RecordType) -> str:
    return "the mail server" if kind == "MX" else f"the {kind} record"


def _purpose(kind: RecordType, value: str) -> str:
    """Return a key that is equal for records of which a program reads only one, or all as one set."""
    if kind == "CAA":
        return value.split(" ", 2)[1]
    if kind != "TXT":
        return ""
    key, separator, rest = value.partition("=")
    if key.strip().lower() == "v":
        return f"v={rest.replace(';', ' ').split(' ')[0].lower()}"
    return key.strip().lower() if separator else ""


def _spf_conflicts(host: _Host, wanted: Sequence[Record]) -> Iterator[Conflict]:
    requested = [text for record in wanted if spf.is_spf(text := normal_value("TXT", record.value))]
    existing = [value for value in host.there.values("TXT") if spf.is_spf(value)]
    if not requested or not existing:
        return
    merged = spf.merge(existing, requested, host.view.spf_texts)
    if len(existing) == 1 and spf.is_covered(existing[0], merged):
        return
    for value in existing:
        if value not in requested:
            reason = f"{host.label} has the SPF record {value}, and mail servers accept only one. {_spf_advice(merged)}"
            suggested = merged.text if merged.is_publishable else None
            yield Conflict(host.record("TXT", value), Rule.SPF, reason, suggested)


def _spf_advice(merged: spf.Merged) -> str:
    if merged.lookups is None:
        return "Whether the merged record stays within ten DNS look-ups is unknown: a record it includes has no answer."
    if not merged.is_publishable:
        return "The merged record would take more than ten DNS look-ups, which mail servers refuse: shorten it first."
    return "Publish the merged record in its place."


def _certificate_conflicts(
    by_host: dict[str, list[Record]], view: ZoneView, certificates: CertificateNeeds
) -> Iterator[Conflict]:
    if not certificates.identities:
        return
    for host in sorted(certificates.hosts):
        owner, existing, requested = _find_authorization(host, by_host, view)
        if any(caa.may_issue((*existing, *requested), names, account) for names, account in certificates.identities):
            continue
        name = next((name for names, _ in certificates.identities for name in names), None)
        suggested = None if name is None else f'0 issue "{name}"'
        for value in existing:
            if value.split(" ", 2)[1] not in ("issuewild", "iodef"):
                reason = (
                    f"The CAA record {value} at {relative_host(owner, view.apex)} forbids the certificate of {host}."
                )
                yield Conflict(existing_record(view.apex, owner, "CAA", value), Rule.CAA, reason, suggested)


def _find_authorization(
    host: str, by_host: dict[str, list[Record]], view: ZoneView
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Find the closest name with CAA records once the requested ones are there.

    Returns that name, its existing and its requested values. A requested CNAME leaves its host no records of its
    own.
    """
    name = host
    while name.endswith(view.apex):
        requested = by_host.get(name, ())
        if name == view.apex or not any(record.type == "CNAME" for record in requested):
            there = view.host(name)
            existing = there.values("CAA") if requested else there.answer("CAA").values
            added = tuple(normal_value("CAA", record.value) for record in requested if record.type == "CAA")
            if existing or added:
                return name, existing, added
        name = name.partition(".")[2]
    return host, (), ()


def _contradictions(host: _Host, by_host: dict[str, list[Record]]) -> Iterator[Conflict]:
    """Report requested records that no zone can hold together."""
    aliases = host.of_type("CNAME")
    values = {normal_name(record.value) for record in aliases}
    others = {record.type for record in host.requested} - {"CNAME"}
    beside = others & _ADDRESSES if host.is_flattened else others
    for record in aliases:
        if beside or len(values) > 1 or host.there.name in values:
            reason = f"The request itself has more than this CNAME at {host.label}, or leads it back to itself."
            yield Conflict(_relative(record, host), Rule.REQUEST, reason)
    above = _requested_cut(host, by_host)
    if above is not None:
        reason = f"The request itself delegates {relative_host(above, host.view.apex)}, which hides what it has below."
        yield from (Conflict(_relative(record, host), Rule.REQUEST, reason) for record in host.requested if above)


def _requested_cut(host: _Host, by_host: dict[str, list[Record]]) -> str | None:
    """Return the name, at or above this one, that the request delegates.

    None if what is requested here is that delegation alone.
    """
    name, apex = host.there.name, host.view.apex
    while name != apex and name.endswith(f".{apex}"):
        types = {record.type for record in by_host.get(name, ())}
        if "NS" in types and (name != host.there.name or len(types) > 1):
            return name
        name = name.partition(".")[2]
    return None


def _relative(record: Record, host: _Host) -> Record:
    return Record(record.type, host.label or APEX, record.value, record.ttl, record.priority)
