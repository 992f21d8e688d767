"""What a request tells the origin about the client, stated by us alone.

The fields of the same names that came with the request were cut out with its head (`edge.http.request`).
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from common.ip_addresses import Network, parse_client_address

_MAX_CHAIN: Final = 50
_PORTS: Final = {b"http": b"80", b"https": b"443"}


class Client:
    """The client of one connection. Made once a connection, asked once a request."""

    __slots__ = ("_block", "_secure", "_trusted", "address", "is_trusted")

    def __init__(self, address: str, *, secure: bool, trusted_proxies: tuple[Network, ...]) -> None:
        self.address = address
        self._secure = secure
        self._trusted = trusted_proxies if trusted_proxies and is_in(address, trusted_proxies) else ()
        self.is_trusted: Final = bool(self._trusted)
        self._block = _block(address.encode(), address.encode(), b"https" if secure else b"http")

    def fields(self, forwarded_for: bytes, forwarded_proto: bytes, host_port: int | None) -> bytes:
        """Return the block of fields about the client; the arguments are what the request said itself.

        The public port is the one the client named with the host, else its scheme's own: ours may stand behind another.
        """
        if self._trusted and (forwarded_for or forwarded_proto):
            chain = _chain(forwarded_for)
            proto = forwarded_proto.rpartition(b",")[2].strip(b" \t").lower()
            if proto not in _PORTS:
                proto = b"https" if self._secure else b"http"
            block = _block(b", ".join([*chain, self.address.encode()]), self._first_untrusted(chain), proto)
        else:
            block = self._block
        return block if host_port is None else b"%b%d" % (block[: block.rindex(b" ") + 1], host_port)

    def origin(self, forwarded_for: bytes) -> str:
        """Return the address the request came from in the first place, as far as trusted proxies vouch for it."""
        if not self._trusted or not forwarded_for:
            return self.address
        return self._first_untrusted(_chain(forwarded_for)).decode("latin-1")

    def _first_untrusted(self, chain: list[bytes]) -> bytes:
        """Return the first address, walking back from us, that no proxy of ours vouches past."""
        for hop in reversed(chain):
            address = parse_client_address(hop.decode("latin-1"))
            if address is None:
                break
            if not is_in(str(address), self._trusted):
                return str(address).encode()
        return self.address.encode()


def address_of(peername: object) -> str:
    """Return the address in a transport's peername, without scope.

    An IPv4 address is stated as such on a dual-stack socket, too.
    """
    host = str(peername[0]) if isinstance(peername, tuple) and peername else ""
    if ":" not in host:
        return host
    return host.removeprefix("::ffff:") if "." in host else host.partition("%")[0]


def is_in(text: str, networks: tuple[Network, ...]) -> bool:
    """Return whether the address is in one of the networks; "" is in none."""
    address = ip_address(text) if text else None
    return any(address in network for network in networks if address and network.version == address.version)


def _chain(forwarded_for: bytes) -> list[bytes]:
    return [part for text in forwarded_for.split(b",")[-_MAX_CHAIN:] if (part := text.strip(b" \t"))]


def _block(chain: bytes, client: bytes, proto: bytes) -> bytes:
    return b"\r\nX-Forwarded-For: %b\r\nX-Forwarded-IP: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Port: %b" % (
        chain,
        client,
        proto,
        _PORTS[proto],
    )
