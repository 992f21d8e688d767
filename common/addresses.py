"""The address policy: which addresses Frontage may dial on others' behalf (origins, webhooks, probes, name servers).

One table of our own instead of ``ipaddress.is_global``, which differs between Python versions and looks at an
IPv6 address without asking which IPv4 address a translator would turn it into. The code that creates the socket asks
this policy about the very address it is about to connect to; a name is never checked in its place.

Rules
    an address of our own listeners is refused, whatever else is allowed: a proxy must not call itself
    an address that carries an IPv4 address stands for both
    what the operator denied is refused, even if it is public or allowed (``FRONTAGE_DENY_ADDRESSES``)
    what is not public is refused unless the operator allowed it (``FRONTAGE_ALLOW_PRIVATE_ADDRESSES``)
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from common.errors import AddressRefused
from common.ip_addresses import IPAddress, Network, parse_address
from common.settings import Settings

# IANA IPv4 Special-Purpose Address Registry: what is not globally reachable, and what is not unicast.
_NOT_PUBLIC_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network (RFC 791 §3.2); Linux dials 0.0.0.0 as loopback
            "10.0.0.0/8",  # private use (RFC 1918)
            "100.64.0.0/10",  # shared by carriers (RFC 6598)
            "127.0.0.0/8",  # loopback (RFC 1122 §3.2.1.3)
            "168.63.129.16/32",  # a public address, but in Azure the virtual machine's own host
            "169.254.0.0/16",  # link-local (RFC 3927); clouds keep their metadata here
            "172.16.0.0/12",  # private use (RFC 1918)
            "192.0.0.0/24",  # protocol assignments (RFC 6890 §2.1)
            "192.0.2.0/24",  # documentation (RFC 5737)
            "192.88.99.0/24",  # 6to4 relays, deprecated (RFC 7526)
            "192.168.0.0/16",  # private use (RFC 1918)
            "198.18.0.0/15",  # benchmarking (RFC 2544)
            "198.51.100.0/24",  # documentation (RFC 5737)
            "203.0.113.0/24",  # documentation (RFC 5737)
            "224.0.0.0/4",  # multicast (RFC 5771)
            "240.0.0.0/4",  # reserved, and limited broadcast (RFC 1112 §4, RFC 919 §7)
        ),
    )
)

# Only 2000::/3 is global unicast (RFC 4291 §2.4), without these parts of it.
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them (RFC 2928, RFC 4380)
            "2001:db8::/32",  # documentation (RFC 3849)
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)

# Outside 2000::/3, these are as public as the IPv4 address in their last 32 bits.
_TRANSLATED_V6 = (
    IPv6Network("::/96"),  # IPv4-compatible (RFC 4291 §2.5.5.1); holds ::1 and :: as 0.0.0.1 and 0.0.0.0
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped (RFC 4291 §2.5.5.2)
    IPv6Network("64:ff9b::/96"),  # NAT64 (RFC 6052 §2.1)
)
# Where an operator's own machines are; documentation, benchmarking and multicast are not.
_PRIVATE = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "::1/128",
            "fc00::/7",
            "fe80::/10",
        ),
    )
)
_LOOPBACK: dict[int, IPAddress] = {4: IPv4Address("127.0.0.1"), 6: IPv6Address("::1")}
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")  # RFC 8215: translated too, but never public


class AddressPolicy:
    """Decides which addresses may be dialled. Immutable; a process makes one.

    A listener on a wildcard address or a host name is every address of this machine.
    """

    def __init__(
        self,
        allowed: Iterable[Network],
        own_listeners: Iterable[tuple[str, int]],
        *,
        denied: Iterable[Network] = (),
        is_own_address: Callable[[IPAddress], bool] | None = None,
    ) -> None:
        self._allowed = tuple(allowed)
        self._denied = tuple(denied)
        self._is_own_address = is_own_address or is_address_of_this_machine
        self._listeners: set[tuple[IPAddress, int]] = set()
        self._ports_everywhere: set[int] = set()
        for host, port in own_listeners:
            address = parse_address(host)
            if address is None or address.is_unspecified:
                self._ports_everywhere.add(port)
            else:
                self._listeners.add((address, port))

    def check(self, address: IPAddress, port: int) -> None:
        """Refuse an address and port that must not be dialled.

        Raises: `AddressRefused`.
        """
        every_form = forms(address)
        if any(self._is_own_listener(form, port) for form in every_form):
            raise AddressRefused(f"{address} port {port} is Frontage itself")
        if any(_is_among(form, self._denied) for form in every_form):
            raise AddressRefused(f"{address} is not an address that may be dialled")
        if _is_among(address, self._allowed):
            return
        if any(not is_public(form) and not _is_among(form, self._allowed) for form in every_form):
            raise AddressRefused(f"{address} is not a public address")

    def _is_own_listener(self, address: IPAddress, port: int) -> bool:
        dialled = _LOOPBACK[address.version] if address.is_unspecified else address  # what Linux makes of it
        if (dialled, port) in self._listeners:
            return True
        return port in self._ports_everywhere and self._is_own_address(address)


def is_public(address: IPAddress) -> bool:
    """Return whether the address is globally reachable.

    The address inside a translated form is not examined (see `forms`).
    """
    if isinstance(address, IPv4Address):
        return not _is_among(address, _NOT_PUBLIC_V4)
    if address in _GLOBAL_UNICAST_V6:
        return not _is_among(address, _NOT_PUBLIC_V6)
    return _is_among(address, _TRANSLATED_V6)


def is_private(address: IPAddress) -> bool:
    """Return whether an operator's own network may use this address, in any form that a translator gives it."""
    return any(_is_among(form, _PRIVATE) for form in forms(address))


def is_address_of_this_machine(address: IPAddress) -> bool:
    """Return whether an address is one of this machine's own, as the kernel's routes have it.

    Nothing is sent: the source address of a packet to an own address is that address.
    """
    if address.is_unspecified or address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False


def forms(address: IPAddress) -> tuple[IPAddress, ...]:
    """Return the address and the IPv4 addresses that a translator, a tunnel or the kernel would turn it into."""
    return (address, *_embedded_addresses(address))


def _embedded_addresses(address: IPAddress) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses inside an IPv6 address."""
    if isinstance(address, IPv4Address):
        return ()
    if address.sixtofour:
        return (address.sixtofour,)
    if address.teredo:
        return address.teredo
    if _is_among(address, _TRANSLATED_V6) or address in _LOCAL_NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return ()


def _is_among(address: IPAddress, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)


def tenant_policy(settings: Settings) -> AddressPolicy:
    """Return the policy for addresses that a tenant names; it refuses the listeners of this installation."""
    return AddressPolicy(settings.allow_private_addresses, settings.listeners, denied=settings.deny_addresses)
