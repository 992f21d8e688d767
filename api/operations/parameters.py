"""Parameters and examples that several areas share."""

from __future__ import annotations

from typing import Final, get_args

from api.operations.operation import Query
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE, LONGEST_SEARCH, ListSort

SIZE: Final = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE, "default": DEFAULT_SIZE}
TEXT: Final = {"type": "string"}
DOMAIN: Final = Query("domain", TEXT, "Asks about one domain; the list's parameters do not count then.")
ROOT: Final = Query("rootDomain", {"type": "boolean", "default": False}, "Asks about the domain's root instead.")
PAGE: Final = (
    Query("page", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0}, "From zero."),
    Query("size", SIZE, "Of a page."),
    Query("status", {"type": "string", "enum": ["active", "inactive"]}, "Only these."),
)
SEARCH: Final = Query(
    "search",
    {"type": "string", "pattern": "^[A-Za-z0-9._-]*$", "maxLength": LONGEST_SEARCH},
    "Only names that contain this. A part looks through a bounded number of names: it can hold fewer than asked for,"
    " even none, while `next` is not null.",
)
AFTER: Final = Query("after", TEXT, "`next` of the part before, with the same `sort`.")
SORT: Final = Query(
    "sort",
    {"type": "string", "enum": list(get_args(ListSort))},
    "The order; `-` reverses it. By `expiresAt`, inactive domains come first, then those that lapse soonest, and"
    " domains without a certificate yet last. With `sort`, `search` or `after` the answer is a part of the list"
    " (no totals, no page numbers) whose items have more fields, and `page` is not taken.",
)
LIMIT: Final = Query("limit", SIZE, "Of a page.")
NEXT: Final = Query("after", TEXT, "`next` of the part before.")
RECORD: Final = {"type": "CNAME", "host": "shop", "value": "apps.acme.example", "ttl": 300}
FLOW: Final = {"id": "The flow's id."}
