"""Fields that an application has its domains' responses carry, compiled once for a route.

A field is added where the origin's response has none of that name: what an origin states itself stands. RFC 6797 §7.2:
Strict-Transport-Security is never sent over plain HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from edge.http.compression import Compression

_HSTS: Final = b"strict-transport-security"


class AddedField(NamedTuple):
    """A field as it is looked for in a head in lower case, and the line that is added."""

    searched: bytes
    line: bytes


class ResponsePolicy(NamedTuple):
    """The fields of responses over HTTPS, and of those over plain HTTP."""

    secure: tuple[AddedField, ...]
    plain: tuple[AddedField, ...]
    compression: Compression = "off"


NO_FIELDS: Final = ResponsePolicy((), ())


def compile_policy(fields: Iterable[tuple[str, str]], compression: Compression = "off") -> ResponsePolicy | None:
    """Return the policy that adds these fields, by name and value, and compresses; None for nothing to do."""
    added = [
        (name.lower().encode(), AddedField(f"\r\n{name.lower()}:".encode(), f"{name}: {value}\r\n".encode()))
        for name, value in fields
    ]
    if not added and compression == "off":
        return None
    plain = tuple(each for name, each in added if name != _HSTS)
    return ResponsePolicy(tuple(each for _, each in added), plain, compression)


def add_fields(head: bytes, policy: ResponsePolicy, scheme: bytes) -> bytes:
    """Return a response's head, to the empty line, with the fields that it lacks."""
    given = head.lower()
    lines = [
        each.line for each in (policy.secure if scheme == b"https" else policy.plain) if each.searched not in given
    ]
    return b"%b%b\r\n" % (head[:-2], b"".join(lines)) if lines else head
