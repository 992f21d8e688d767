"""The zone: what the lab's name server knows, and how it answers. No sockets.

It stands in for the whole DNS: authoritative for every name, it also follows CNAMEs through the zone, as the
resolver a service asks would. Wildcards follow RFC 4592: an existing name, or one with existing names beneath
it, hides them. Names are given as text, with or without the trailing dot, in any case.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset

DEFAULT_TTL_SECONDS = 60
_LONGEST_CHAIN = 16
_SOA = "ns.lab. hostmaster.lab. 1 3600 600 86400 60"


class Behaviour(enum.Enum):
    """How a name misbehaves, in place of an answer from the zone."""

    SERVFAIL = "servfail"
    REFUSED = "refused"
    NXDOMAIN = "nxdomain"
    TIMEOUT = "timeout"  # no answer at all


@dataclass(frozen=True, slots=True)
class Question:
    """One question that the zone was asked; `name` is lower-case, without the trailing dot."""

    name: str
    type: str


@dataclass(slots=True)
class _Records:
    ttl_seconds: int
    values: list[str] = field(default_factory=list)


class Zone:
    """The lab's records. Mutable from the loop that serves it; every change shows in the very next answer.

    A server that is not authoritative answers like a resolver, without the AA flag.
    """

    def __init__(self, *, is_authoritative: bool = True) -> None:
        self._is_authoritative = is_authoritative
        self._records: dict[dns.name.Name, dict[str, _Records]] = {}
        self._behaviours: dict[dns.name.Name, Behaviour] = {}
        self.questions: list[Question] = []

    # What it holds --------------------------------------------------------------------------------------

    def add(self, name: str, kind: str, value: str, *, ttl_seconds: int = DEFAULT_TTL_SECONDS) -> None:
        """Add one record, e.g. ``add("shop.example.com", "CNAME", "target.example.net")``.

        Raises: ValueError when `value` is not a record of that type.
        """
        kind = kind.upper()
        try:
            _rdata(kind, value)
        except Exception as error:
            raise ValueError(f"not a {kind} record: {value}") from error
        of_name = self._records.setdefault(_parse(name), {})
        records = of_name.setdefault(kind, _Records(ttl_seconds))
        records.ttl_seconds = ttl_seconds
        if value not in records.values:
            records.values.append(value)

    def replace(self, name: str, kind: str, *values: str, ttl_seconds: int = DEFAULT_TTL_SECONDS) -> None:
        """Make `values` the name's only records of that type; with none, remove them."""
        self.remove(name, kind)
        for value in values:
            self.add(name, kind, value, ttl_seconds=ttl_seconds)

    def remove(self, name: str, kind: str | None = None, value: str | None = None) -> None:
        """Remove one record, all of a type, or everything the name has. What is not there is no error."""
        owner = _parse(name)
        of_name = self._records.get(owner, {})
        for each in [kind.upper()] if kind else list(of_name):
            if value is None:
                of_name.pop(each, None)
            elif each in of_name and value in of_name[each].values:
                of_name[each].values.remove(value)
                if not of_name[each].values:
                    del of_name[each]
        if not of_name:
            self._records.pop(owner, None)

    def values(self, name: str, kind: str) -> tuple[str, ...]:
        """Return what `name` itself has of that type, wildcards aside."""
        records = self._records.get(_parse(name), {}).get(kind.upper())
        return () if records is None else tuple(records.values)

    def listed(self) -> Iterator[tuple[str, str, str]]:
        """Yield every record: name, type and value."""
        for name, of_name in self._records.items():
            for kind, records in of_name.items():
                for value in records.values:
                    yield name.to_text(omit_final_dot=True), kind, value

    def misbehave(self, name: str, behaviour: Behaviour | None) -> None:
        """End questions that meet `name` in `behaviour` from now on; None mends it."""
        if behaviour is None:
            self._behaviours.pop(_parse(name), None)
        else:
            self._behaviours[_parse(name)] = behaviour

    # How it answers -------------------------------------------------------------------------------------

    def answer(self, query: dns.message.Message) -> dns.message.Message | None:
        """Return the response to `query`; None when the lab is to stay silent."""
        response = dns.message.make_response(query, recursion_available=True)
        if not isinstance(response, dns.message.QueryMessage) or len(query.question) != 1:
            response.set_rcode(dns.rcode.FORMERR)
            return response
        if self._is_authoritative:
            response.flags |= dns.flags.AA
        question = query.question[0]
        kind = dns.rdatatype.to_text(question.rdtype)
        self.questions.append(Question(question.name.to_text(omit_final_dot=True).lower(), kind))
        return self._follow(response, question.name, kind)

    def follow_on(self, response: dns.message.Message) -> dns.message.Message:
        """Complete another server's response whose last CNAME leads into this zone."""
        kind, last = (
            dns.rdatatype.to_text(response.question[0].rdtype),
            response.answer[-1] if response.answer else None,
        )
        if last is None or last.rdtype != dns.rdatatype.CNAME or kind == "CNAME":
            return response
        response.authority = []
        response.set_rcode(dns.rcode.NOERROR)
        assert isinstance(response, dns.message.QueryMessage)
        return self._follow(response, last[0].target, kind) or response

    def _follow(self, response: dns.message.QueryMessage, name: dns.name.Name, kind: str) -> dns.message.Message | None:
        for _ in range(_LONGEST_CHAIN):
            if (behaviour := self._behaviours.get(name)) is not None:
                return _misbehaved(response, behaviour)
            found = self._find(name)
            if found is None:
                response.set_rcode(dns.rcode.NXDOMAIN)
                break
            if (answer := found.get(kind)) is not None:
                response.answer.append(_rrset(name, kind, answer))
                return response
            if (alias := found.get("CNAME")) is None:
                break  # NODATA
            response.answer.append(_rrset(name, "CNAME", alias))
            name = dns.name.from_text(alias.values[0])
        else:
            return _misbehaved(response, Behaviour.SERVFAIL)  # a loop
        response.authority.append(_rrset(dns.name.root, "SOA", _Records(DEFAULT_TTL_SECONDS, [_SOA])))
        return response

    def _find(self, name: dns.name.Name) -> dict[str, _Records] | None:
        """Return the records at `name` or at the wildcard that covers it; None when there is no such name."""
        if name in self._records:
            return self._records[name]
        if self._has_names_below(name):
            return {}
        for ancestor in _ancestors(name):
            wildcard = dns.name.Name((b"*", *ancestor.labels))
            if wildcard in self._records:
                return self._records[wildcard]
            if ancestor in self._records or self._has_names_below(ancestor):
                return None  # the closest encloser: wildcards above it do not count
        return None

    def _has_names_below(self, name: dns.name.Name) -> bool:
        return any(other != name and other.is_subdomain(name) for other in self._records)


def parse_record(text: str) -> tuple[str, str, str]:
    """Return ``"name TYPE value"`` in its three parts.

    Raises: ValueError.
    """
    parts = text.split(None, 2)
    if len(parts) != 3:
        raise ValueError(f'expected "name TYPE value", got "{text}"')
    return parts[0], parts[1], parts[2]


def load_records(zone: Zone, records: Iterable[str]) -> None:
    """Add records, each as `parse_record` reads it."""
    for record in records:
        zone.add(*parse_record(record))


def _parse(name: str) -> dns.name.Name:
    return dns.name.from_text(name)


def _ancestors(name: dns.name.Name) -> Iterator[dns.name.Name]:
    while name != dns.name.root:
        name = name.parent()
        yield name


@lru_cache(maxsize=4096)
def _rdata(kind: str, value: str) -> dns.rdata.Rdata:
    """Return the record's data, remembered, being immutable: to read it from text was half of an answer."""
    return dns.rdata.from_text(
        dns.rdataclass.IN, dns.rdatatype.from_text(kind), value, origin=dns.name.root, relativize=False
    )


def _rrset(name: dns.name.Name, kind: str, records: _Records) -> dns.rrset.RRset:
    return dns.rrset.from_rdata_list(name, records.ttl_seconds, [_rdata(kind, value) for value in records.values])


def _misbehaved(response: dns.message.Message, behaviour: Behaviour) -> dns.message.Message | None:
    if behaviour is Behaviour.TIMEOUT:
        return None
    response.answer.clear()
    response.set_rcode(dns.rcode.from_text(behaviour.name))
    return response
