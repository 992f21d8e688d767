"""Lists in the order of names, in parts: ``limit`` and ``after``, the `next` of the part before.

The text of ``after`` is opaque to clients; it holds where the next part begins, and never whose things are listed.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE, parse_integer, parse_optional_text

_LONGEST = 2000


class NameQuery(NamedTuple):
    """`after`: the fields of the last item's key."""

    after: tuple[str, ...] | None
    limit: int


def parse(query: MultiMapping[str], *, fields: int) -> NameQuery:
    """Read the query of a list whose key has this many fields. Raises: `Refused`."""
    limit = parse_integer(query, "limit", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)
    text = parse_optional_text(query, "after")
    if text is None:
        return NameQuery(None, limit)
    try:
        return NameQuery(_from_text(text, fields), limit)
    except ValueError as error:
        raise Refused(invalid_parameter("after"), hint="the `next` of the part before") from error


def following(keys: Sequence[tuple[str, ...]], query: NameQuery) -> str | None:
    """Return where the part after these items begins; a full part has one, behind which there may be nothing."""
    return _to_text(keys[-1]) if len(keys) == query.limit else None


def _to_text(key: tuple[str, ...]) -> str:
    return urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def _from_text(text: str, fields: int) -> tuple[str, ...]:
    """Read the text of ``after``. Raises: `ValueError`."""
    if len(text) > _LONGEST:
        raise ValueError(text)
    found: Any = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    if not isinstance(found, list) or len(found) != fields:
        raise ValueError(text)
    if not all(isinstance(each, str) and each.isprintable() for each in found):
        raise ValueError(text)
    return tuple(found)
