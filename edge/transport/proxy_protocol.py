"""Reads the PROXY protocol, versions 1 and 2, as HAProxy specifies it: the client's address from a trusted proxy.

`read` tells a header from what is none, and refuses what is neither. `Entrance` stands before the first
protocol of a connection from a trusted proxy: it waits for the header, or for the first bytes that cannot be one, and
then hands over to the port's own protocol, which sees the stated address as its peer's. Strangers never come to `read`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, NamedTuple, cast

from common.errors import FrontageError
from common.ip_addresses import IPAddress, Network
from edge.http.forwarded import address_of, is_in
from edge.transport.connection_limits import ConnectionLimits

_V1_SIGNATURE: Final = b"PROXY "
_V1_MAX_BYTES: Final = 107  # with the line's end; specification 2.1
_V1_UNKNOWN: Final = re.compile(rb"PROXY UNKNOWN(?: [^\r\n]*)?")
_V1_STATED: Final = re.compile(
    rb"PROXY TCP([46]) ([0-9A-Fa-f.:]+) ([0-9A-Fa-f.:]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})"
)
_V2_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_FIXED_BYTES: Final = 16
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_TCP4, _V2_TCP6 = 0x11, 0x21
_V2_UNSPECIFIED: Final = frozenset({0x00, 0x12, 0x22, 0x31, 0x32})  # no address of an HTTP client


class Malformed(FrontageError):
    """Bytes that begin like a header and are none."""


class Stated(NamedTuple):
    """What a header says. `client` is None when it is the peer itself (LOCAL, UNKNOWN, or no header)."""

    client: tuple[str, int] | None
    header_bytes: int


_NO_HEADER: Final = Stated(None, 0)


def read(data: bytes) -> Stated | None:
    """Read the header; return None while more bytes are needed to tell.

    Raises: `Malformed`.
    """
    if data.startswith(_V1_SIGNATURE):
        return _read_v1(data)
    if data.startswith(_V2_SIGNATURE):
        return _read_v2(data)
    if _V1_SIGNATURE.startswith(data) or _V2_SIGNATURE.startswith(data):
        return None
    return _NO_HEADER


def _read_v1(data: bytes) -> Stated | None:
    end = data.find(b"\r\n", 0, _V1_MAX_BYTES)
    if end < 0:
        if len(data) >= _V1_MAX_BYTES or b"\n" in data:
            raise Malformed("version 1 has no end")
        return None
    line = data[:end]
    if _V1_UNKNOWN.fullmatch(line):
        return Stated(None, end + 2)
    stated = _V1_STATED.fullmatch(line)
    if stated is None:
        raise Malformed("version 1 is no such line")
    read_address = IPv4Address if stated[1] == b"4" else IPv6Address
    source, destination = (_parsed(read_address, text) for text in stated.group(2, 3))
    source_port, destination_port = int(stated[4]), int(stated[5])
    if not (source and destination) or max(source_port, destination_port) > 65535:
        raise Malformed("version 1 states no address")
    return Stated((source, source_port), end + 2)


def _parsed(read_address: type[IPAddress], text: bytes) -> str:
    try:
        return _text(read_address(text.decode("ascii")))
    except ValueError:
        return ""


def _text(address: IPAddress) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _read_v2(data: bytes) -> Stated | None:
    if len(data) < _V2_FIXED_BYTES:
        return None
    command, family, end = data[12], data[13], _V2_FIXED_BYTES + int.from_bytes(data[14:16])
    if command not in (_V2_LOCAL, _V2_PROXY):
        raise Malformed("version 2 knows no such command")
    if len(data) < end:
        return None
    if command == _V2_LOCAL or family in _V2_UNSPECIFIED:
        return Stated(None, end)
    if family == _V2_TCP4 and end >= 28:
        return Stated((_text(IPv4Address(data[16:20])), int.from_bytes(data[24:26])), end)
    if family == _V2_TCP6 and end >= 52:
        return Stated((_text(IPv6Address(data[16:32])), int.from_bytes(data[48:50])), end)
    raise Malformed("version 2 states no address")


def entrance(
    inner_factory: Callable[[], asyncio.Protocol],
    connection_limits: ConnectionLimits,
    trusted_proxies: tuple[Network, ...],
    seconds: float,
) -> Callable[[], asyncio.Protocol]:
    """Return a factory of what a port's connections begin with: `inner_factory` where no proxy is trusted."""
    if not trusted_proxies:
        return inner_factory
    return partial(Entrance, inner_factory, connection_limits, trusted_proxies, seconds)


class Entrance(asyncio.Protocol):
    """Reads a connection's header, where proxies are trusted.

    It holds the connection's place until it hands over.
    """

    __slots__ = (
        "_connection_limits",
        "_deadline",
        "_inner_factory",
        "_place",
        "_raw",
        "_received",
        "_seconds",
        "_trusted",
    )

    def __init__(
        self,
        inner_factory: Callable[[], asyncio.Protocol],
        connection_limits: ConnectionLimits,
        trusted_proxies: tuple[Network, ...],
        seconds: float,
    ) -> None:
        self._inner_factory = inner_factory
        self._connection_limits = connection_limits
        self._trusted = trusted_proxies
        self._seconds = seconds  # for the header to arrive
        self._received = b""
        self._place: str | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a header, if the peer is a trusted proxy."""
        self._raw = cast("asyncio.Transport", transport)
        peername = transport.get_extra_info("peername")
        if not is_in(address_of(peername), self._trusted):
            self._begin_inner(self._raw)
            return
        self._place = self._connection_limits.admit(peername)
        self._deadline = asyncio.get_running_loop().call_later(self._seconds, self._raw.abort)
        if self._place is None:
            self._raw.abort()

    def data_received(self, data: bytes) -> None:
        """Read the header, and hand over once it is complete."""
        self._received += data
        try:
            stated = read(self._received)
        except Malformed:
            self._connection_limits.malformed_headers += 1
            self._raw.abort()
            return
        if stated is not None:
            self._hand_over(stated)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up the connection's place."""
        self._part()

    def _hand_over(self, stated: Stated) -> None:
        self._part()
        raw = self._raw
        inner = self._begin_inner(raw if stated.client is None else restated(raw, stated.client))
        if (rest := self._received[stated.header_bytes :]) and not raw.is_closing():
            inner.data_received(rest)

    def _begin_inner(self, transport: asyncio.Transport) -> asyncio.Protocol:
        inner = self._inner_factory()
        self._raw.set_protocol(inner)
        inner.connection_made(transport)
        return inner

    def _part(self) -> None:
        assert self._deadline is not None
        self._deadline.cancel()
        self._connection_limits.leave(self._place)


class _Restated:
    """A transport with another peer's address; everything else is the transport's own, at no cost."""

    def __init__(self, raw: asyncio.Transport, peername: tuple[str, int]) -> None:
        self._raw = raw
        self._peername = peername
        self.write = raw.write
        self.writelines = raw.writelines

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._peername if name == "peername" else self._raw.get_extra_info(name, default)


def restated(raw: asyncio.Transport, peername: tuple[str, int]) -> asyncio.Transport:
    """Return the transport with another peername."""
    return cast("asyncio.Transport", _Restated(raw, peername))
