"""The address that limits are kept by: the client's, an IPv4 address or an IPv6 /64. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_network

from common.ip_addresses import parse_client_address
from common.settings import Networks


def client_address(peer: str, forwarded_for: Sequence[str], trusted: Networks) -> str:
    """`peer` is the connection's; `forwarded_for` the values of X-Forwarded-For, believed as far as trusted proxies
    wrote them: the last address that is not one of theirs is the client's."""
    chain = [part.strip() for value in forwarded_for for part in value.split(",")]
    address = peer
    while is_trusted(address, trusted) and chain:
        address = chain.pop()
    return limited_by(address)


def is_trusted(address: str, trusted: Networks) -> bool:
    parsed = parse_client_address(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)


def limited_by(address: str) -> str:
    """A client has a whole IPv6 /64 (RFC 6177). What is no address counts as one client."""
    parsed = parse_client_address(address)
    if parsed is None:
        return "unknown"
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed), 64), strict=False))
    return str(parsed)
