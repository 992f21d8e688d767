"""Whose an HTTP-01 challenge is: ours while a domain's certificate is on its way, its origin's once that is live.

enrolled, without a certificate, or its order runs     ours
enrolled, with a certificate, no order                 the origin's: it may have a CA of its own
not enrolled                                           nobody's, like any other path
this node hears nothing from Postgres, or holds        ours, whatever it last knew: of the orders that run and the
back what it hears for an operator to look at          domains that were enrolled meanwhile it cannot know
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from edge.http.request import RequestHead
from edge.replica.records import AcmeKeyRecord, Reader, RecordUnusable, read_record
from edge.routing.challenge import key_authorization


class ChallengeReader(Reader, Protocol):
    def is_cut_off(self) -> bool:
        """Whether what this node knows is old, and nobody waits for it to learn more."""


def own_answer(reader: ChallengeReader, head: RequestHead, is_enrolled: Callable[[str], bool]) -> bytes | None:
    """What answers this challenge; None when it is not ours to answer, or no challenge at all."""
    thumbprint = _thumbprint(reader)
    if thumbprint is None or not (reader.is_cut_off() or _is_awaited(reader, head.host, is_enrolled)):
        return None
    return key_authorization(head, thumbprint)


def _is_awaited(reader: Reader, domain: str, is_enrolled: Callable[[str], bool]) -> bool:
    if reader.get_raw("certificate", domain) is None:
        return is_enrolled(domain)
    return reader.get_raw("order", domain) is not None


def _thumbprint(reader: Reader) -> bytes | None:
    content = reader.get_raw("acme_key", "current")
    try:
        return None if content is None else read_record(AcmeKeyRecord, content).thumbprint.encode()
    except RecordUnusable:
        return None
