"""Where a part of a domain list ends, as the text that ``after`` takes.

The text is opaque to partners. It holds where the next part begins; whose domains are listed never depends on it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any

import orjson

from common.db.domain_list_query import NEVER, PRODUCTS, ListKey, Sort

LONGEST = 1000
_TEXT = re.compile(r"[!-~]{1,255}")
_INFINITE = (NEVER, datetime.min)  # noqa: DTZ901 - as the driver reads them
_YEARS = range(1970, 9999)


def to_text(key: ListKey | None, sort: Sort) -> str | None:
    """Return the text of the end of a part; None at the end of a list."""
    if key is None:
        return None
    fields = [sort, key.name, key.product, key.application_id, key.added_at, key.lapses_at, key.is_well]
    return urlsafe_b64encode(orjson.dumps(fields)).decode().rstrip("=")


def from_text(text: str, sort: Sort) -> ListKey:
    """Read the text of ``after``. Raises: `ValueError` for what is no end of a list in this order."""
    if len(text) > LONGEST:
        raise ValueError(text)
    fields: Any = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    match fields:
        case [str(of_sort), str(name), str(product), str(application_id), str(added), str(lapses), bool(is_well)]:
            if of_sort != sort or product not in PRODUCTS or not all(map(_TEXT.fullmatch, (name, application_id))):
                raise ValueError(text)
            return ListKey(name, product, application_id, _moment(added), _moment(lapses), is_well)
    raise ValueError(text)


def _moment(text: str) -> datetime:
    """Read a time. Raises: `ValueError`."""
    moment = datetime.fromisoformat(text)
    if moment not in _INFINITE and (moment.tzinfo is None or moment.year not in _YEARS):
        raise ValueError(text)
    return moment
