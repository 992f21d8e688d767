"""An application's own notes of a domain: texts by keys, kept and shown as they came, and found by.

Flat on purpose: a domain is found by one key and its text, and a chosen key goes to the origin as one header field,
`X-Service-Metadata-` and the key, with hyphens for underscores. So keys that would be the same field are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import orjson

from common.errors import FrontageError

MOST_BYTES: Final = 2048
"""Of all keys and texts, as compact JSON."""
MOST_FIELDS: Final = 10
"""Keys of an application that its origin gets."""
KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
FIELD_PREFIX: Final = "X-Service-Metadata-"
_PLAIN: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


class InvalidMetadata(FrontageError):
    """What is wrong, as the end of a sentence."""


def check_metadata(given: Mapping[str, str]) -> dict[str, str]:
    """Return the notes, as they are kept. Raises: `InvalidMetadata`."""
    check_keys(list(given))
    for key, text in given.items():
        if not text.isprintable():
            raise InvalidMetadata(f"{key}: control characters and line breaks cannot be kept")
    if len(orjson.dumps(given)) > MOST_BYTES:
        raise InvalidMetadata(f"at most {MOST_BYTES} bytes of keys and texts, as JSON")
    return dict(given)


def check_keys(keys: Sequence[str]) -> None:
    """Refuse keys that are none, or that would be the same header field. Raises: `InvalidMetadata`."""
    fields: dict[str, str] = {}
    for key in keys:
        if not KEY.fullmatch(key):
            raise InvalidMetadata("keys are a letter, then up to 39 letters, digits, hyphens or underscores")
        other = fields.setdefault(field_name(key).lower(), key)
        if other != key:
            raise InvalidMetadata(f"{other} and {key} would be one header field: keep one of them")


def read_note(text: str) -> tuple[str, str] | None:
    """Return the key and the text that ``plan=pro`` looks for; None for what is no such question."""
    key, equals, value = text.partition("=")
    return (key, value) if equals and KEY.fullmatch(key) and value.isprintable() else None


def field_name(key: str) -> str:
    """Return the name of the header field by which an origin gets a key."""
    return FIELD_PREFIX + key.replace("_", "-")


def field_value(text: str) -> str:
    """Return the text as a header field's value: what is no printable ASCII, and ``%``, is percent-encoded UTF-8."""
    value = quote(text, safe=_PLAIN, errors="replace")
    stripped = value.strip(" ")  # blanks around a field's value are not of it (RFC 9110 §5.5)
    if stripped == value:
        return value
    start, end = value.split(stripped, 1) if stripped else (value, "")
    return start.replace(" ", "%20") + stripped + end.replace(" ", "%20")
