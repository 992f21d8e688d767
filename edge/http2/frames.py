"""The layout of frames (RFC 9113 §4.1, §6) and of settings (§6.5): bytes only, no rule about who may send what when."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HEADER_BYTES: Final = 9
MAX_FRAME_BYTES: Final = 16_384  # what we receive and send: the protocol's default and least
MAX_WINDOW: Final = 2**31 - 1
DEFAULT_WINDOW: Final = 65_535

DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9
PRIORITY_UPDATE: Final = 0x10  # RFC 9218 §7.1

ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

HEADER_TABLE_SIZE: Final = 0x1
ENABLE_PUSH: Final = 0x2
MAX_CONCURRENT_STREAMS: Final = 0x3
INITIAL_WINDOW_SIZE: Final = 0x4
MAX_FRAME_SIZE: Final = 0x5
MAX_HEADER_LIST_SIZE: Final = 0x6
NO_RFC7540_PRIORITIES: Final = 0x9  # RFC 9218 §2.1

_HEADER: Final = Struct(">IBI")
_SETTING: Final = Struct(">HI")
_GOAWAY: Final = Struct(">II")
_WORD: Final = Struct(">I")

pack_header: Final = _HEADER.pack
"""A header from ``(length << 8 | type, flags, stream)``."""
read_header: Final = _HEADER.unpack_from
"""``(length << 8 | type, flags, R and stream)`` at an offset."""
read_word: Final = _WORD.unpack_from
"""The four octets at an offset."""

SETTINGS_ACK: Final = _HEADER.pack(SETTINGS, ACK, 0)


def header(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    """Return a frame's header."""
    return _HEADER.pack(length << 8 | kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return _HEADER.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def settings(values: Iterable[tuple[int, int]]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*value) for value in values))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the settings of a payload whose length is a multiple of 6."""
    return list(_SETTING.iter_unpack(payload))


def rst_stream(stream_id: int, code: int) -> bytes:
    """Return a RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream_id, _WORD.pack(code))


def window_update(stream_id: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream_id, _WORD.pack(increment))


def goaway(last_stream_id: int, code: int, debug: bytes = b"") -> bytes:
    """Return a GOAWAY frame."""
    return frame(GOAWAY, 0, 0, _GOAWAY.pack(last_stream_id, code) + debug)


def headers(stream_id: int, block: bytes, *, end_stream: bool, max_bytes: int) -> list[bytes]:
    """Return a HEADERS frame, and CONTINUATION frames where the block is longer than `max_bytes`."""
    first = END_STREAM if end_stream else 0
    if len(block) <= max_bytes:
        return [_HEADER.pack(len(block) << 8 | HEADERS, first | END_HEADERS, stream_id), block]
    parts = [frame(HEADERS, first, stream_id, block[:max_bytes])]
    last = (len(block) - 1) // max_bytes * max_bytes
    parts += (
        frame(CONTINUATION, END_HEADERS if at == last else 0, stream_id, block[at : at + max_bytes])
        for at in range(max_bytes, len(block), max_bytes)
    )
    return parts
