"""Field lines and octets made from a seed, for the cases that are read by two implementations."""

from __future__ import annotations

from random import Random

Fields = list[tuple[bytes, bytes]]

NAMES = [b"accept", b"user-agent", b"cookie", b"x-a", b"x-b", b"x-longer-name", b"etag", b"range", b"referer", b"dnt"]
_VALUE_OCTETS = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))


def text(rng: Random, most: int = 40) -> bytes:
    octets = _VALUE_OCTETS if rng.random() < 0.2 else _VALUE_OCTETS[:94]
    return bytes(rng.choices(octets, k=rng.randrange(most)))


def some_fields(rng: Random) -> Fields:
    few = [text(rng, 12) for _ in range(3)]
    return [(rng.choice(NAMES), rng.choice([*few, text(rng)])) for _ in range(rng.randrange(8))]


def damage(rng: Random, data: bytes) -> bytes:
    """Return the octets with one change."""
    if not data:
        return data
    at, kind = rng.randrange(len(data)), rng.randrange(4)
    if kind == 0:
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[at + 1 :]
    return data[:at] + rng.randbytes(1) + data[at:]
