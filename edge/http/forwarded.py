"""What a request tells the origin about the client (SPEC 4.7), stated by us alone.

The fields of the same names that came with the request were cut out with its head (`edge.http.request`).
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from common.settings import Networks

_MAX_CHAIN: Final = 50


class Client:
    """Who is at the other end of one downstream connection. Made once a connection, asked once a request."""

    __slots__ = ("_block", "_secure", "_trusted", "address")

    def __init__(self, address: str, *, secure: bool, trusted_proxies: Networks) -> None:
        self.address = address
        self._secure = secure
        self._trusted = trusted_proxies if trusted_proxies and _is_in(address, trusted_proxies) else ()
        self._block = _block(address.encode(), address.encode(), b"https" if secure else b"http")

    def fields(self, forwarded_for: bytes, forwarded_proto: bytes) -> bytes:
        """The block of fields about the client; the two arguments are what the request said itself."""
        if not self._trusted or not (forwarded_for or forwarded_proto):
            return self._block
        chain = [part for text in forwarded_for.split(b",")[-_MAX_CHAIN:] if (part := text.strip(b" \t"))]
        client = self._first_untrusted(chain)
        proto = forwarded_proto.rpartition(b",")[2].strip(b" \t").lower()
        if proto not in (b"http", b"https"):
            proto = b"https" if self._secure else b"http"
        return _block(b", ".join([*chain, self.address.encode()]), client, proto)

    def _first_untrusted(self, chain: list[bytes]) -> bytes:
        """Walking back from us: the first address no proxy of ours vouches past."""
        for hop in reversed(chain):
            text = hop.decode("latin-1")
            if not _is_address(text):
                break
            if not _is_in(text, self._trusted):
                return hop
        return self.address.encode()


def _block(chain: bytes, client: bytes, proto: bytes) -> bytes:
    return b"\r\nX-Forwarded-For: %b\r\nX-Forwarded-IP: %b\r\nX-Forwarded-Proto: %b" % (chain, client, proto)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_in(text: str, networks: Networks) -> bool:
    address = ip_address(text)
    return any(address in network for network in networks if network.version == address.version)
