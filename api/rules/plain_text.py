"""Plain text exposure: whether secrets of the API and the dashboard would cross a network unencrypted.

The API speaks plain HTTP; TLS is put in front of it, and the scheme of `PUBLIC_URL` shows it. On loopback nothing
crosses a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from common.ip_addresses import parse_address
from common.settings import PREFIX, Settings

_SECRETS = "passwords, tokens and client secrets cross the network in plain text"
_REMEDY = (
    f"put TLS in front (handbook, Running), set {PREFIX}PUBLIC_URL to its https:// address,"
    f" and let {PREFIX}API_LISTEN be on loopback"
)


@dataclass(frozen=True, slots=True)
class Exposure:
    """A risk that an operator should end: `seen` is the fact, `remedy` what the operator does about it."""

    seen: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.seen}: {self.remedy}"


def find_exposure(settings: Settings) -> Exposure | None:
    """Find where secrets cross a network unencrypted.

    None where clients are on this machine, or reach the API through TLS.
    """
    public = urlsplit(settings.base_url)
    if public.scheme == "https":
        return None
    if settings.public_url is not None and not is_loopback(public.hostname or ""):
        return Exposure(f"{PREFIX}PUBLIC_URL is {settings.public_url}, so {_SECRETS}", _REMEDY)
    if not is_loopback(settings.api_listen.host):
        return Exposure(f"the API listens on {settings.api_listen} without TLS, so {_SECRETS}", _REMEDY)
    return None


def find_open_listener(settings: Settings) -> Exposure | None:
    """Report the API's own listener if TLS is in front of it, but others than the proxy reach it too."""
    if urlsplit(settings.base_url).scheme != "https" or is_loopback(settings.api_listen.host):
        return None
    return Exposure(
        f"the API also answers without TLS, on {settings.api_listen}",
        "let only the proxy in front of it connect there",
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is on this machine; a name, whether it is one that never leaves it (RFC 6761 §6.3)."""
    address = parse_address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")
