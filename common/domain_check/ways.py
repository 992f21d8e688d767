"""Ways: how records can be put in place at a provider, as far as this installation is set up for it. Pure.

Rules
    a way is open only if both sides can really go it: the provider offers it, and this installation is set up for it
    the way that asks least of a person stands first; the manual one is always open, and last
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from common.domain_check.providers import Provider


class Way(StrEnum):
    """The values are what the API shows."""

    DOMAIN_CONNECT = "domain_connect"  # a consent page at the provider (draft-ietf-dconn-domainconnect)
    DYNAMIC_UPDATE = "dynamic_update"  # RFC 2136, signed by TSIG
    PROVIDER_API = "provider_api"  # with a token that the person pastes
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class OpenWays:
    """What this installation is set up for. `domain_connect_ids`: providers (Domain Connect's ids) that have our
    template. `provider_apis`: names of provider APIs that it speaks. `zones`: apexes it has a key for RFC 2136 of."""

    domain_connect_ids: frozenset[str] = frozenset()
    provider_apis: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()


def ways_open_to(provider: Provider, apex: str, installation: OpenWays) -> list[Way]:
    """In the order to offer them."""
    ways = []
    if provider.domain_connect_id in installation.domain_connect_ids:
        ways.append(Way.DOMAIN_CONNECT)
    if apex in installation.zones:
        ways.append(Way.DYNAMIC_UPDATE)
    if provider.api in installation.provider_apis:
        ways.append(Way.PROVIDER_API)
    return [*ways, Way.MANUAL]


def setup_type(ways: list[Way]) -> Literal["automatic", "manual"]:
    """What the API shows as ``setupType``."""
    return "automatic" if any(way is not Way.MANUAL for way in ways) else "manual"
