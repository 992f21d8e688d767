"""Protocols a message offers to switch to (RFC 9110 §7.8). h2c is never one: two readers would see two protocols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from edge.http import fields

_PROTOCOL: Final = re.compile(fields.TOKEN + rb"+(?:/" + fields.TOKEN + rb"+)?")
_H2C: Final = re.compile(rb"h2c(?:/|\Z)", re.IGNORECASE)


def protocols(values: Iterable[bytes]) -> bytes:
    """Return one Upgrade field's value for all of `values`; b"" where nothing may be passed on."""
    offered = [part.strip(b" \t") for value in values for part in value.split(b",")]
    return b", ".join(name for name in offered if _PROTOCOL.fullmatch(name) and not _H2C.match(name))


def is_offered(chosen: bytes, offered: bytes) -> bool:
    """Return whether a response's Upgrade names protocols, and only such as the request offered (RFC 9110 §7.8)."""
    names = _lower_names(chosen)
    return bool(names) and names <= _lower_names(offered)


def _lower_names(value: bytes) -> set[bytes]:
    return {name.strip().lower() for name in value.split(b",")} - {b""}
