"""Literal fields that a worker's clients sent lately (RFC 7541 §6.2): the same octets mean the same field.

Paths, and what browsers say of themselves, come again and again on other connections. A literal whose name refers to a
connection's dynamic table means something there alone, and one that is never to be indexed (§6.2.3) may be a secret:
neither is kept here. Equal octets are found at once or not at all: how long that takes tells nothing of other clients'.
"""

from __future__ import annotations

from typing import Final

from edge.http2.fields import Field

_MAX_LITERALS: Final = 1024
KEPT_OF: Final = 7
"""One in so many: requests seldom have seven unknown literals, of which the same one would be kept each time."""

_MAX_LITERAL_BYTES: Final = 128  # less than the shortest whose length takes more than an octet


class KnownLiterals:
    """Up to 1,024 literals of 128 octets, which decode to some 700 KB. One in each worker; `get` finds a field.

    Of those that are not known, a part is kept: what clients send again and again is soon, and what comes once (most
    cookies, many paths) costs little and seldom displaces it.
    """

    __slots__ = ("_fields", "_until_kept", "get")

    def __init__(self) -> None:
        self._fields: dict[bytes, Field] = {}
        self._until_kept = KEPT_OF
        self.get = self._fields.get

    def learn(self, literal: bytes, field: Field) -> None:
        """Keep a field's whole literal that is not known, if it is the one that is to be kept, and may be."""
        self._until_kept -= 1
        if self._until_kept:
            return
        self._until_kept = KEPT_OF
        if len(literal) > _MAX_LITERAL_BYTES or 0x10 <= literal[0] < 0x20:  # §6.2.3
            return
        if len(self._fields) >= _MAX_LITERALS:
            self._fields.clear()
        self._fields[literal] = field
