"""For whom a browser keeps passkeys: the dashboard's address, as WebAuthn Level 3 (§4, relying party) wants it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from common.ip_addresses import parse_address


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The site that passkeys are made for.

    `id` is the address's host, `origin` its scheme, host and port. `is_possible` where browsers allow passkeys:
    over https, or http on this machine, and by name.
    """

    id: str
    origin: str
    is_possible: bool

    @classmethod
    def of(cls, base_url: str) -> RelyingParty:
        """Make the relying party of the address that the API is reached at."""
        url = urlsplit(base_url)
        host = url.hostname or ""
        is_local = host == "localhost" or host.endswith(".localhost")
        is_possible = parse_address(host) is None and (url.scheme == "https" or is_local)
        return cls(host, f"{url.scheme}://{url.netloc}", is_possible)
