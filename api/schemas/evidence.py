"""What a check or a diagnosis shows of the answers it got, without the operator's own network.

A tenant may ask about any name, those of the operator's network too: the resolver that the operator runs may know
private addresses that no other client can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import ip_address

from common.addresses import forms, is_private, is_public
from common.host_ports import parse_host_port
from common.ip_addresses import parse_address

_HIDDEN = "a private address"


class ServerNames:
    """How servers are shown: those of the operator's own network by a number. Made for one answer.

    Mutable state: the numbers given so far.
    """

    def __init__(self) -> None:
        self._hidden: dict[tuple[str, str], str] = {}

    def shown(self, role: str, server: str) -> str:
        """`server` is ``host:port``."""
        if all(map(is_public, forms(ip_address(parse_host_port(server).host)))):
            return server
        number = 1 + sum(of_role == role for of_role, _ in self._hidden)
        return self._hidden.setdefault((role, server), f"{role} {number}")


def hide_private(values: Sequence[str], *, known: Collection[str] = ()) -> list[str]:
    """Return `values` without private addresses, but for those that the tenant knows anyway."""
    return [_HIDDEN if value not in known and _is_private(value) else value for value in values]


def _is_private(value: str) -> bool:
    address = parse_address(value)
    return address is not None and is_private(address)
