"""Zone view: what a zone's own servers, and those of its parent, answer about the names of one check.

Every answer keeps its outcome, so that "could not ask" stays apart from "absent" (`common.dns.questions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from common.dns.questions import Answer, Chain, Outcome
from common.records import APEX, Record, RecordType, preference

NOT_ASKED = Answer(Outcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class HostView:
    """The records of one name. `name` is absolute, in normal form.

    `answers`: by type; a type that is missing was not asked. `wildcard`: the name of the wildcard that the answers come
    from; None if the name has records of its own or none (RFC 4592). `zone_cut`: the name, below the apex and at or
    above this one, from which another zone begins; its name servers are `delegated_to`. The answers are then those of
    that zone. `chain`: where the name's CNAME leads, if it has one.
    """

    name: str
    answers: Mapping[RecordType, Answer]
    wildcard: str | None = None
    zone_cut: str | None = None
    delegated_to: tuple[str, ...] = ()

    def values(self, kind: RecordType) -> tuple[str, ...]:
        """Return the values that the name itself has, in normal form: none of a wildcard's."""
        return () if self.wildcard is not None else self.answer(kind).values

    def answer(self, kind: RecordType) -> Answer:
        """Return the answer about one type, or `NOT_ASKED`."""
        return self.answers.get(kind, NOT_ASKED)

    def records(self, apex: str) -> Iterator[Record]:
        """Yield every record of the name itself."""
        for kind, answer in self.answers.items():
            for value in self.values(kind):
                yield existing_record(apex, self.name, kind, value, answer.ttl_seconds)


@dataclass(frozen=True, slots=True)
class ZoneView:
    """One zone at one time. `apex` is in canonical form.

    `delegation`: the NS records by the parent's servers; NO_NAME there: the parent does not know the domain.
    `name_servers` and `soa`: the zone's own NS and SOA, by its own servers. `hosts`: by absolute name.
    Of the requested records: `spf_texts` are the TXT records of names that SPF records include; `chains`, where the
    targets of CNAMEs lead; `addresses`, those of targets of CNAMEs at the apex.
    """

    apex: str
    delegation: Answer
    name_servers: Answer
    soa: Answer
    hosts: Mapping[str, HostView] = field(default_factory=dict)
    spf_texts: Mapping[str, Answer] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)
    addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def host(self, name: str) -> HostView:
        """Return what is known of a name: nothing if it was not asked about."""
        return self.hosts.get(name) or HostView(name, {})

    @property
    def server_names(self) -> tuple[str, ...]:
        """The name servers that the parent names, then those that only the zone itself names."""
        return tuple(dict.fromkeys((*self.delegation.values, *self.name_servers.values)))


def relative_host(name: str, apex: str) -> str:
    """Return the host of an absolute name as people write it.

    ``@`` for the apex, a final dot for a name outside of it.
    """
    if name != apex and not name.endswith(f".{apex}"):
        return f"{name}."
    return name.removesuffix(apex).removesuffix(".") or APEX


def existing_record(apex: str, name: str, kind: RecordType, value: str, ttl_seconds: int = 0) -> Record:
    """Make the record of a value in a zone: its host relative to the apex, an MX record's priority apart."""
    priority, rest = preference(value) if kind == "MX" else (None, value)
    return Record(kind, relative_host(name, apex), rest, ttl_seconds, priority)
