"""The responses an origin of a benchmark gives, as bytes: one for all, or no two alike. Pure."""

from __future__ import annotations

from collections.abc import Sequence

BODY_BYTES = 1024
VARIANTS = 4096

# Fixed, with a Date: origins repeat themselves within a second.
_HEAD = (
    "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
    f"Content-Length: {BODY_BYTES}\r\nConnection: keep-alive\r\n"
)


def same() -> Sequence[bytes]:
    return [_answer("")]


def keeping() -> Sequence[bytes]:
    """One that states how long the origin keeps the connection: what must not be sent twice goes on such only."""
    return [_answer("Keep-Alive: timeout=600\r\n")]


def varied() -> Sequence[bytes]:
    """`VARIANTS` responses, each with an entity tag, a cookie and a request id of its own."""
    return [_answer(_own_fields(number)) for number in range(VARIANTS)]


def _own_fields(number: int) -> str:
    mark = f"{number * 2654435761 % (1 << 64):016x}"
    return f'ETag: "{mark}"\r\nSet-Cookie: session={mark}{mark}; Path=/; HttpOnly\r\nX-Request-Id: {mark}\r\n'


def _answer(own_fields: str) -> bytes:
    return f"{_HEAD}{own_fields}\r\n".encode("ascii") + b"x" * BODY_BYTES
