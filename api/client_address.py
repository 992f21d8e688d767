"""The address that limits are kept by: the client's, an IPv4 address or an IPv6 /64."""

from __future__ import annotations

from collections.abc import Sequence

from common.ip_addresses import Network, limit_key, parse_client_address


def client_address(peer: str, forwarded_for: Sequence[str], trusted: tuple[Network, ...]) -> str:
    """Return the address of the client, behind trusted proxies or not.

    `peer` is the connection's; `forwarded_for` the values of X-Forwarded-For, believed as far as trusted proxies
    wrote them: the last address that is not one of theirs is the client's.
    """
    chain = [part.strip() for value in forwarded_for for part in value.split(",")]
    address = peer
    while is_trusted(address, trusted) and chain:
        address = chain.pop()
    return limited_by(address)


def is_trusted(address: str, trusted: tuple[Network, ...]) -> bool:
    """Return whether an address is a trusted proxy's."""
    parsed = parse_client_address(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)


def limited_by(address: str) -> str:
    """Return what an address is counted by; a text that is no address counts as one client."""
    parsed = parse_client_address(address)
    return limit_key(str(parsed)) if parsed else "unknown"
