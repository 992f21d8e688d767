"""Registration: whether a domain is registered, and whether that has expired.

Rules
    a domain that the zone above delegates, or has records of, is registered, whatever RDAP answers
    a domain that the zone above does not know is registered if RDAP knows it: on hold, or in its redemption period
    it has expired when its expiration date is past, or the registry is about to delete it (RFC 8056 §2)
    a top-level domain without RDAP leaves the delegation to decide: registries take expired domains out of their zones
    what could not be asked is unknown, never "no"
RDAP answers are JSON objects of RFC 9083 §5.3; the servers are found by IANA's bootstrap file (RFC 9224).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import orjson

from common.dns.questions import Answer, Outcome
from common.errors import FrontageError
from common.settings import IANA_RDAP_BOOTSTRAP

_ENDING = frozenset({"redemption period", "pending delete"})
_FEWEST_TLDS = 500  # a bootstrap file with fewer is damaged: there were 1,200 in 2026


class InvalidRdap(FrontageError):
    """An answer, or a bootstrap file, that is not what its RFC describes."""


class RdapFailure(StrEnum):
    """Why RDAP has no answer; the values are what the API shows as ``code``."""

    UNAVAILABLE = "rdap_unavailable"
    BUSY = "rdap_busy"  # its budget is used up, or the server asks for a pause


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """What a registry answers about a domain; `expires_at` is None if it is not stated."""

    is_registered: bool
    expires_at: datetime | None = None
    statuses: frozenset[str] = frozenset()

    def has_expired(self, now: datetime) -> bool:
        """Return whether the domain has expired, or the registry is about to delete it."""
        return not self.statuses.isdisjoint(_ENDING) or (self.expires_at is not None and self.expires_at <= now)


@dataclass(frozen=True, slots=True)
class Registration:
    """Whether a domain is registered, and whether that has expired."""

    is_registered: bool
    has_expired: bool


def decide(delegation: Answer, entry: RegistryEntry | RdapFailure | None, now: datetime) -> Registration | RdapFailure:
    """Decide whether a domain is registered, by its delegation and its registry.

    `delegation` must be known. `entry` None: the top-level domain has no RDAP server.
    """
    if isinstance(entry, RdapFailure):
        return entry
    is_in_zone = delegation.outcome is not Outcome.NO_NAME
    if entry is None or not entry.is_registered:
        return Registration(is_in_zone, has_expired=False)
    return Registration(is_registered=True, has_expired=entry.has_expired(now))


def read_entry(status: int, body: bytes, name: str) -> RegistryEntry:
    """Read an RDAP server's response to the question about `name`.

    Raises: `InvalidRdap`.
    """
    if status == 404:
        return RegistryEntry(is_registered=False)
    if status != 200:
        raise InvalidRdap(f"status {status}")
    answer = _object(body)
    given = str(answer.get("ldhName", name)).lower().removesuffix(".")
    if answer.get("objectClassName") != "domain" or given != name:
        raise InvalidRdap("the answer is not about this domain")
    statuses = frozenset(str(each).lower() for each in _list(answer.get("status")))
    times = [_time(event) for event in _list(answer.get("events")) if _action(event) == "expiration"]
    return RegistryEntry(True, max((each for each in times if each is not None), default=None), statuses)


def _action(event: Any) -> str:
    return str(event.get("eventAction", "")).lower() if isinstance(event, Mapping) else ""


def _time(event: Mapping[str, Any]) -> datetime | None:
    """Parse the time of an event (RFC 3339); one without a zone is taken as UTC."""
    try:
        at = datetime.fromisoformat(str(event.get("eventDate", "")))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRdap("not JSON") from error
    if not isinstance(answer, dict):
        raise InvalidRdap("not a JSON object")
    return answer


# Servers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The RDAP servers of domains.

    `servers`: base URLs that end with a slash, by domain; `published`: the file's own time, as text of RFC 3339 in
    UTC, so that the later of two is the greater.
    """

    published: str
    servers: Mapping[str, tuple[str, ...]]

    def find(self, name: str) -> tuple[str, ...]:
        """Return the servers of the longest domain that `name` is beneath (RFC 9224 §4).

        None if it has no RDAP server.
        """
        while name:
            if found := self.servers.get(name):
                return found
            name = name.partition(".")[2]
        return ()


NO_SERVERS = Bootstrap("", MappingProxyType({}))


def fewest_domains(source: str) -> int:
    """Return how many domains a whole file from this URL has at least; one of the operator's own may be short."""
    return _FEWEST_TLDS if source == IANA_RDAP_BOOTSTRAP else 1


def parse_bootstrap(body: bytes, *, fewest: int = _FEWEST_TLDS) -> Bootstrap:
    """Parse a bootstrap file.

    Raises: `InvalidRdap`, also for a file with fewer than `fewest` domains.
    """
    content = _object(body)
    servers: dict[str, tuple[str, ...]] = {}
    for service in _list(content.get("services")):
        if not isinstance(service, list) or len(service) < 2:
            raise InvalidRdap("a service is an array of domains and one of URLs")
        urls = tuple(
            f"{str(url).rstrip('/')}/" for url in _list(service[1]) if str(url).startswith(("https:", "http:"))
        )
        if urls:
            servers |= dict.fromkeys((str(name).lower() for name in _list(service[0])), urls)
    if len(servers) < fewest:
        raise InvalidRdap(f"only {len(servers)} domains have servers")
    return Bootstrap(str(content.get("publication", "")), MappingProxyType(servers))


@cache
def packaged_bootstrap() -> Bootstrap:
    """Return the file as packaged; it is read once, at the first use."""
    return parse_bootstrap(resources.files("common.domain_check").joinpath("rdap_bootstrap.json").read_bytes())
