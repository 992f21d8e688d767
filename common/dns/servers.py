"""Which recursive resolvers there are: those of the settings, or the system's own."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from common.addresses import AddressPolicy
from common.errors import AddressRefused, OperatorError
from common.host_ports import HostPort

SYSTEM_RESOLV_CONF = Path("/etc/resolv.conf")

_MAX_SYSTEM_SERVERS = 3  # as the C library's MAXNS


def refuse_forbidden(server: HostPort, policy: AddressPolicy) -> None:
    """Refuse a configured resolver that the address policy does not allow, or that is no address.

    Raises: `OperatorError`.
    """
    try:
        policy.check(ip_address(server.host), server.port)
    except ValueError as error:
        raise OperatorError(f"FRONTAGE_DNS_SERVERS names {server}: give addresses, not names") from error
    except AddressRefused as error:
        raise OperatorError(
            f"FRONTAGE_DNS_SERVERS names {server}, and {error}: allow it in FRONTAGE_ALLOW_PRIVATE_ADDRESSES"
        ) from error


def system_servers(resolv_conf: Path = SYSTEM_RESOLV_CONF) -> tuple[HostPort, ...]:
    """Return the system's resolvers, read anew at each call because machines change networks."""
    try:
        lines = resolv_conf.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    fields = [line.split() for line in lines]
    servers = [HostPort(words[1], 53) for words in fields if words[:1] == ["nameserver"] and len(words) > 1]
    return tuple(servers[:_MAX_SYSTEM_SERVERS]) or (HostPort("127.0.0.1", 53),)
