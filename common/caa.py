"""CAA: finds and decides which CA may issue a certificate for a domain (RFC 8659).

Rules
    the closest of the domain and its parents that has CAA records decides (§3); CNAMEs are the resolver's business
    "could not ask" is never "may" (§5.6: a failed look-up is retried)
    for a wildcard ``issuewild`` counts in place of ``issue``, where there is one (§4.3), and the search begins at the
        name that the wildcard is of (§3)
    a set with a critical property that we do not know forbids (§4.5)
    ``accounturi`` and ``validationmethods`` (RFC 8657) must hold where they stand
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from common.dns import Answer, Outcome
from common.names import base_of
from common.records import RecordType

_CRITICAL: Final = 128
_ISSUE_TAGS: Final = frozenset({"issue", "issuewild"})
# The registered properties besides these, which do not restrict certificates for web servers.
_OTHER_TAGS: Final = frozenset({"iodef", "issuemail", "issuevmc", "contactemail", "contactphone"})
_MOST_VALUE_CHARACTERS: Final = 4096  # one that is longer is not read
_BLANKS: Final = " \t"
_CA_NAME: Final = re.compile(r"[a-z0-9.-]*", re.IGNORECASE)
_PARAMETER_TAG: Final = re.compile(r"[a-z0-9][a-z0-9-]*", re.IGNORECASE)
_PARAMETER_VALUE: Final = re.compile(r"[!-:<-~]*")


class CaaResolver(Protocol):
    """The part of `common.dns.Pass` that this module uses."""

    async def ask(self, name: str, kind: RecordType, /) -> Answer:
        """Ask a resolver for the records of one type under a name."""

    async def resolve_confirmed(self, name: str, /, *kinds: RecordType) -> list[Answer]:
        """Ask for records of several types; confirm with the zone's own servers what a resolver has in its cache."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """The CAA record set that decides for a domain, or for a wildcard, and the name of its owner.

    Without records any CA may issue. With an `outcome` that is not known (`common.dns`) the decision is unknown.
    """

    outcome: Outcome
    name: str = ""
    records: tuple[str, ...] = ()
    is_wildcards: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the DNS answered, so that the decision is known."""
        return self.outcome.is_known


async def find_authorization(questions: CaaResolver, domain: str) -> Authorization:
    """Find the record set that decides for `domain` (§3), asking for all of its parents at once.

    Records that a resolver has may be gone from the zone, whose own servers are then asked; they must not keep a
    certificate back for their TTL.
    """
    labels = base_of(domain).split(".")
    names = [".".join(labels[index:]) for index in range(len(labels))]
    found = _closest_records(names, await asyncio.gather(*(questions.ask(name, "CAA") for name in names)))
    if found.outcome is Outcome.RECORDS:
        confirmed = await asyncio.gather(*(questions.resolve_confirmed(name, "CAA") for name in names))
        found = _closest_records(names, [answer for (answer,) in confirmed])
    return replace(found, is_wildcards=domain != base_of(domain))


def _closest_records(names: Iterable[str], answers: Iterable[Answer]) -> Authorization:
    """Return the record set of the first name that has records, or an unknown one if an answer before it is missing."""
    for name, answer in zip(names, answers, strict=True):
        if answer.outcome is Outcome.RECORDS:
            return Authorization(answer.outcome, name, answer.values)
        if not answer.outcome.is_known:
            return Authorization(answer.outcome, name)
    return Authorization(Outcome.NO_DATA)


def may_issue(
    records: Iterable[str],
    identities: Iterable[str],
    account_url: str | None,
    method: str = "http-01",
    *,
    is_wildcards: bool = False,
) -> bool:
    """Return whether a CA named one of `identities` may issue to our account there, for a wildcard or a single name.

    `method` is the validation's (RFC 8657 §4).
    `records` are ``flags tag value``. A CA without known identities passes where a record names any CA: only the CA
    knows its own name, and it checks CAA itself.
    """
    properties = [_parse_property(record) for record in records]
    if any(flags & _CRITICAL and tag not in _ISSUE_TAGS | _OTHER_TAGS for flags, tag, _ in properties):
        return False
    values = _issue_values(properties, is_wildcards=is_wildcards)
    names = {identity.lower() for identity in identities}
    return not values or any(_authorizes(value, names, account_url, method) for value in values)


def list_allowed_cas(authorization: Authorization) -> list[str]:
    """Return the CAs that may issue by these records, as text for people."""
    properties = [_parse_property(record) for record in authorization.records]
    found = map(_parse_issue_value, _issue_values(properties, is_wildcards=authorization.is_wildcards))
    return [parts[0] for parts in found if parts and parts[0]]


def _issue_values(properties: Sequence[tuple[int, str, str]], *, is_wildcards: bool) -> list[str]:
    """Return the values that say which CAs may issue."""
    of_wildcards = [value for _, tag, value in properties if tag == "issuewild"]
    if is_wildcards and of_wildcards:
        return of_wildcards
    return [value for _, tag, value in properties if tag == "issue"]


def _authorizes(value: str, names: set[str], account_url: str | None, method: str) -> bool:
    parts = _parse_issue_value(value)
    if parts is None or not parts[0] or (names and parts[0].removesuffix(".") not in names):
        return False  # §4.2: an unreadable value authorizes no CA
    return _parameters_hold(parts[1], account_url, method)


def _parse_issue_value(value: str) -> tuple[str, str] | None:
    """Return the CA's name in lower case and the parameters as written, or None for a value that cannot be read."""
    name, _, parameters = value[:_MOST_VALUE_CHARACTERS].partition(";")
    name = name.strip(_BLANKS)
    is_readable = len(value) <= _MOST_VALUE_CHARACTERS and _CA_NAME.fullmatch(name)
    return (name.lower(), parameters) if is_readable else None


def _parameters_hold(text: str, account_url: str | None, method: str) -> bool:
    for part in filter(str.strip, text.split(";")):
        name, equals, value = (each.strip(_BLANKS) for each in part.partition("="))
        if not (equals and _PARAMETER_TAG.fullmatch(name) and _PARAMETER_VALUE.fullmatch(value)):
            return False
        name = name.lower()
        if name == "accounturi" and value != account_url:
            return False
        if name == "validationmethods" and method not in value.lower().split(","):
            return False
    return True


def _parse_property(record: str) -> tuple[int, str, str]:
    flags, tag, value = record.split(" ", 2)
    return int(flags), tag.lower(), value
