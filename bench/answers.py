"""The responses an origin of a benchmark gives, as bytes: one for all, or no two alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

BODY_BYTES = 1024
VARIANTS = 4096

# Fixed, with a Date: origins repeat themselves within a second.
_HEAD = "HTTP/1.1 {status}\r\nServer: origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n"


def same() -> Sequence[bytes]:
    """Return one response with a body of `BODY_BYTES`."""
    return [_answer("")]


def keeping() -> Sequence[bytes]:
    """Return one response that states how long the origin keeps the connection.

    A request that must not be sent twice is sent on such connections only.
    """
    return [_answer("Keep-Alive: timeout=600\r\n")]


def varied() -> Sequence[bytes]:
    """Return `VARIANTS` responses, each with an entity tag, a cookie and a request id of its own."""
    return [_answer(_own_fields(number)) for number in range(VARIANTS)]


def sized() -> Sequence[bytes]:
    """Return responses as `varied` does, with bodies of 200 bytes to 20 KB."""
    rng = Random(29)
    return [_answer(_own_fields(number), rng.randrange(200, 20_480)) for number in range(VARIANTS)]


def not_modified() -> Sequence[bytes]:
    """Return `VARIANTS` responses with status 304, each with an entity tag of its own."""
    return [_bare("304 Not Modified", f'ETag: "{mark}"\r\nCache-Control: max-age=60\r\n') for mark in _marks()]


def for_head() -> Sequence[bytes]:
    """Return responses to HEAD: they state the length of a body that does not follow."""
    return [_bare("200 OK", f'ETag: "{mark}"\r\nContent-Length: {BODY_BYTES}\r\n') for mark in _marks()]


def missing() -> Sequence[bytes]:
    """Return responses as `varied` does, with status 404."""
    return [_answer(_own_fields(number), status="404 Not Found") for number in range(VARIANTS)]


def redirects() -> Sequence[bytes]:
    """Return `VARIANTS` responses with status 302, each with a location of its own."""
    return [_bare("302 Found", f"Location: /from/{mark}\r\nContent-Length: 0\r\n") for mark in _marks()]


def with_two_cookies() -> Sequence[bytes]:
    """Return responses as `varied` does, with a second cookie."""
    return [_answer(_own_fields(n) + f"Set-Cookie: seen={mark}; path=/\r\n") for n, mark in enumerate(_marks())]


def with_many_fields() -> Sequence[bytes]:
    """Return responses as `varied` does, with 30 fields in all, of which 21 are the same each time."""
    policies = "".join(f"X-Policy-{number}: a value of some length that stays\r\n" for number in range(21))
    return [_answer(_own_fields(number) + policies) for number in range(VARIANTS)]


def compressed() -> Sequence[bytes]:
    """Return responses as `varied` does, marked as gzip, with bodies of 500 to 3,500 bytes."""
    extra = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
    return [_answer(_own_fields(number) + extra, 500 + number % 3000) for number in range(VARIANTS)]


def _marks() -> Iterable[str]:
    """Yield `VARIANTS` numbers in hexadecimal, no two alike."""
    return (f"{number * 2654435761 % (1 << 64):016x}" for number in range(VARIANTS))


def _own_fields(number: int) -> str:
    mark = f"{number * 2654435761 % (1 << 64):016x}"
    return f'ETag: "{mark}"\r\nSet-Cookie: session={mark}{mark}; Path=/; HttpOnly\r\nX-Request-Id: {mark}\r\n'


def _answer(own_fields: str, body_bytes: int = BODY_BYTES, status: str = "200 OK") -> bytes:
    head = _HEAD.format(status=status)
    return (
        f"{head}Content-Type: text/plain\r\nContent-Length: {body_bytes}\r\n{own_fields}\r\n".encode("ascii")
        + b"x" * body_bytes
    )


def _bare(status: str, own_fields: str) -> bytes:
    """Return an answer without a body."""
    return f"{_HEAD.format(status=status)}{own_fields}\r\n".encode("ascii")
