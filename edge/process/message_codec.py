"""The encoding of both control channels: one message a line, JSON, named by the key ``say``.

A message is a dataclass. The name that is sent is its class's, or its `NAME`: a process of another version may be at
the other end, so that it stays when the class is renamed. The fields are its JSON, unless it defines `to_plain` and
`from_plain` itself. Unknown fields are ignored, so that a later version may add some;
those that it added have a default for messages of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, Generic, TypeVar

import orjson

M = TypeVar("M")


def encode_message(message: Any) -> bytes:
    """Return the message as a line."""
    plain = message.to_plain() if hasattr(message, "to_plain") else asdict(message)
    return orjson.dumps({"say": _name_of(type(message)), **plain}) + b"\n"


def _name_of(kind: type[Any]) -> str:
    name: str = getattr(kind, "NAME", kind.__name__)
    return name


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


class MessageDecoder(Generic[M]):
    """Decodes the messages of one side of a channel; `kinds` are their classes."""

    def __init__(self, *kinds: type[M]) -> None:
        self._kinds: Mapping[str, Any] = {_name_of(kind): kind for kind in kinds}

    def decode(self, line: bytes) -> M | None:
        """Return the message, or None for one of another name.

        Raises: ValueError, KeyError for what is no message.
        """
        plain = orjson.loads(line)
        kind = self._kinds.get(plain["say"])
        if kind is None:
            return None
        if hasattr(kind, "from_plain"):
            message: M = kind.from_plain(plain)
            return message
        known: M = kind(
            **{each.name: plain[each.name] for each in fields(kind) if each.name in plain or _is_required(each)}
        )
        return known
