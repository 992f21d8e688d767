"""IP addresses: the types of addresses and networks, whether a text is one, which client it stands for.

Which addresses may be dialled is decided by `common.addresses`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

IPAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?")


def parse_address(text: str) -> IPAddress | None:
    """Return the address in `text`, without brackets, port or blanks, or None where it is not one."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def limit_key(address: str) -> str:
    """Return the client that limits count an address against: the IPv4 address, or the IPv6 /64.

    A site has a whole /64 (RFC 6177).
    """
    return f"{IPv6Address(IPv6Address(address).packed[:8] + bytes(8))}/64" if ":" in address else address


def site_key(client: str) -> str:
    """Return the site that a client of `limit_key` belongs to: the IPv4 address, or the IPv6 /48.

    A /48 is what a site gets at most (RFC 6177).
    """
    prefix, slash, _ = client.partition("/")
    return f"{IPv6Address(IPv6Address(prefix).packed[:6] + bytes(10))}/48" if slash else client


def parse_client_address(text: str) -> IPAddress | None:
    """Return the address in an element of ``X-Forwarded-For``, or of a peer, or None where it is not one.

    Proxies write it as it is, with a port, or in brackets as RFC 7239 §6 does. An IPv4 address in IPv6 form is one.
    """
    found = _WITH_PORT.fullmatch(text)
    address = parse_address((found[1] or found[2]) if found else text)
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
