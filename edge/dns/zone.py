"""The delegated zone: which records a question is answered with.

    the zone's own name         SOA, NS
    a label of a running order  TXT: what the CA looks for
    any other name in the zone  NXDOMAIN; SERVFAIL while this edge may not know (its copy is missing or unusable, or it
                                is cut off from Postgres), so that the resolver asks another edge
    any other name              REFUSED: there is no recursion

A name that has no record of the kind asked for: no records, and the SOA. Resolvers remember
neither what is there nor what is absent, since an order may begin at any moment, and a domain's and its wildcard's run
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from common.errors import FrontageError
from edge.dns.messages import (
    ANY,
    BADVERS,
    IN,
    NOERROR,
    NS,
    NXDOMAIN,
    REFUSED,
    SERVFAIL,
    SOA,
    TXT,
    Answer,
    Question,
    record,
    write_name,
    write_text,
)

TTL_SECONDS: Final = 0
_ZONE_TTL_SECONDS: Final = 3600
_TIMES: Final = (1, 3600, 600, 604_800, TTL_SECONDS)  # serial, refresh, retry, expire, minimum; no server copies it


class Unknown(FrontageError):
    """What the label stands for cannot be known now."""


class Zone:
    """The zone `name`, served by `name_server`. Both are host names.

    `find_values` returns the TXT values of a label, none for one without a running order, and raises `Unknown`.
    """

    def __init__(self, name: str, name_server: str, find_values: Callable[[str], Sequence[str]]) -> None:
        self._labels = _split(name)
        self._find_values = find_values
        own, server = write_name(self._labels), write_name(_split(name_server))
        self._ns = record(NS, _ZONE_TTL_SECONDS, server)
        soa = server + write_name((b"hostmaster", *self._labels)) + b"".join(n.to_bytes(4, "big") for n in _TIMES)
        self._soa = record(SOA, TTL_SECONDS, soa)
        self._absent = (record(SOA, TTL_SECONDS, soa, own),)

    def answer(self, question: Question) -> Answer:
        """Return what the question is answered with."""
        if question.edns is not None and question.edns.version:
            return Answer(BADVERS)
        depth = len(question.labels) - len(self._labels)
        if question.of_class != IN or depth < 0 or question.labels[depth:] != self._labels:
            return Answer(REFUSED)
        if question.kind in (251, 252):  # IXFR, AXFR: what runs is not listed
            return Answer(REFUSED)
        return self._answer_label(question) if depth else self._answer_own_name(question.kind)

    def _answer_own_name(self, kind: int) -> Answer:
        if kind in (SOA, ANY):  # one kind is enough for ANY (RFC 8482 §4.1)
            return Answer(NOERROR, (self._soa,))
        return Answer(NOERROR, (self._ns,)) if kind == NS else Answer(NOERROR, (), self._absent)

    def _answer_label(self, question: Question) -> Answer:
        if len(question.labels) > len(self._labels) + 1:
            return Answer(NXDOMAIN, (), self._absent)
        try:
            values = self._find_values(question.labels[0].decode("ascii"))
        except Unknown:
            return Answer(SERVFAIL)
        except UnicodeDecodeError:
            values = ()
        if not values:
            return Answer(NXDOMAIN, (), self._absent)
        if question.kind not in (TXT, ANY):
            return Answer(NOERROR, (), self._absent)
        return Answer(NOERROR, [record(TXT, TTL_SECONDS, write_text(value)) for value in values])


def _split(name: str) -> tuple[bytes, ...]:
    return tuple(name.lower().rstrip(".").encode("idna").split(b"."))
