"""Tells whether a text is an IP address. Pure: the edge's pure packages use it too.

Which addresses may be dialled is decided by `common.addresses`.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in `text`, without brackets, port or blanks; None where it is not one."""
    try:
        return ip_address(text)
    except ValueError:
        return None
