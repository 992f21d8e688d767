"""The delegation of a domain's challenge to the operator's zone: the record, and whose domain it proves.

``_acme-challenge.<domain> CNAME <label>.<FRONTAGE_ACME_DNS_ZONE>``. The label belongs to one application and domain, so
the record proves the domain to be that application's, and a CA can validate the domain by DNS-01 (RFC 8555 §8.4),
wherever its visitors are led. It is the record of the domain's wildcard too (RFC 8555 §7.1.3 gives both one challenge
name), so a label belongs to both, and proves both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from common.db import delegations
from common.db.pool import Database
from common.dns import Answer
from common.names import base_of
from common.records import RecordType

CHALLENGE_LABEL = "_acme-challenge"


class Delegate(NamedTuple):
    """The application that a domain's challenge is delegated to, if any; `is_known`: the DNS was asked, and agrees."""

    application_id: str | None
    is_known: bool = True


class CnameRecord(NamedTuple):
    """The record that delegates a domain's challenge."""

    host: str
    value: str


Ask = Callable[[str, RecordType], Awaitable[Answer]]


class FindDelegate(Protocol):
    """Finds the application that a domain's challenge is delegated to."""

    async def __call__(self, ask: Ask, domain: str, /) -> Delegate:
        """Ask by `ask`, a pass' confirmed or authoritative questions."""


@dataclass(frozen=True, slots=True)
class Delegations:
    """Finds and makes delegations to `zone`; without one there are none, and nothing is asked."""

    database: Database
    zone: str | None

    async def __call__(self, ask: Ask, domain: str, /) -> Delegate:
        """Return the application that the domain's challenge is delegated to, as `FindDelegate`."""
        if self.zone is None:
            return Delegate(None)
        base = base_of(domain)
        answer = await ask(f"{CHALLENGE_LABEL}.{base}", "CNAME")
        is_known = answer.outcome.is_known and not answer.is_disputed
        labels = [value.removesuffix(f".{self.zone}") for value in answer.values if value.endswith(f".{self.zone}")]
        if not labels:
            return Delegate(None, is_known)
        async with self.database.connection() as connection:
            return Delegate(await delegations.find_application(connection, labels[0], base), is_known)

    async def find_record(self, domain: str, application_id: str, *, makes_label: bool = True) -> CnameRecord | None:
        """Return the record to set; None without a zone, or where there is no label and none is to be made."""
        if self.zone is None:
            return None
        base = base_of(domain)
        find = delegations.mint if makes_label else delegations.find_label
        async with self.database.connection() as connection:
            label = await find(connection, base, application_id)
        return None if label is None else CnameRecord(f"{CHALLENGE_LABEL}.{base}", f"{label}.{self.zone}")


async def find_no_delegate(_ask: Ask, _domain: str, /) -> Delegate:
    """Find nothing, and ask nothing: a `FindDelegate` where delegations do not count."""
    return Delegate(None)
