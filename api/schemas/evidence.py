"""What a check or a diagnosis shows of the answers it got, without the operator's own network.

A tenant may ask about any name, those of the operator's network too: the resolver that the operator runs may know
private addresses that no other client can.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from common.addresses import forms, is_private, is_public
from common.db.monitored_domains import LastCheck, MonitoredKey
from common.ip_addresses import parse_address
from common.settings import parse_host_port

_STATEMENT_FIELDS = ("at", "role", "server", "name", "type", "outcome", "values")
_HIDDEN = "a private address"


def last_check(key: MonitoredKey, check: LastCheck) -> dict[str, Any]:
    """What the last check went by: each answer it got, oldest first."""
    return {
        "domain": key.domain,
        "subdomain": key.subdomain,
        "state": check.state,
        "last_checked_at": check.checked_at,
        "evidence": None if check.evidence is None else _shown(check.evidence),
    }


def _shown(statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without the private addresses that a server of the operator's own network knows: anybody may have any name
    watched, those of that network too."""
    names, shown = ServerNames(), []
    for statement in statements:
        server = names.shown(statement["role"], statement["server"])
        fields = {**statement, "server": server}
        if server != statement["server"] and "values" in statement:
            fields["values"] = hide_private(statement["values"])
        shown.append({field: fields[field] for field in _STATEMENT_FIELDS if field in fields})
    return shown


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
    """`values` without private addresses, but for those that the tenant knows anyway."""
    return [_HIDDEN if value not in known and _is_private(value) else value for value in values]


def _is_private(value: str) -> bool:
    address = parse_address(value)
    return address is not None and is_private(address)
