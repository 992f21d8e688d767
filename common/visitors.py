"""Who may visit a domain, how often, and over which TLS: what is kept of it, and the addresses in it.

Kept as the API has it: ``allow`` and ``deny`` (networks in canonical form), ``rateLimit`` (``requests`` in ``seconds``,
for each client) and ``minimumTls``. An address that is denied is refused, whatever is allowed; where anything is
allowed, every other address is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from common.errors import FrontageError
from common.ip_addresses import IPAddress, Network

MOST_NETWORKS: Final = 200
_MAPPED: Final = IPv6Network("::ffff:0:0/96")  # RFC 4291 §2.5.5.2


class InvalidNetwork(FrontageError):
    """Why a text is no network, as the end of a sentence."""


def parse_network(text: str) -> Network:
    """Read an address, or a network in CIDR notation; IPv4 in IPv6 form is IPv4. Raises: `InvalidNetwork`."""
    try:
        network = ip_network(text)
    except ValueError as error:
        raise InvalidNetwork("an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32") from error
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFF_FFFF, network.prefixlen - 96))
    return network


class NetworkSet:
    """Networks that an address is looked up in: one look-up for each length of a prefix, however many there are."""

    __slots__ = ("_by_length",)

    def __init__(self, networks: Iterable[Network]) -> None:
        by_length: dict[tuple[int, int], set[int]] = {}
        for network in networks:
            host_bits = network.max_prefixlen - network.prefixlen
            by_length.setdefault((network.version, host_bits), set()).add(int(network.network_address) >> host_bits)
        self._by_length: Final = tuple((*key, frozenset(found)) for key, found in by_length.items())

    def __contains__(self, address: IPAddress) -> bool:
        number, version = int(address), address.version
        return any(kind == version and number >> bits in found for kind, bits, found in self._by_length)
