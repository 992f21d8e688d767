"""Parameters and examples that several areas share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
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
METADATA: Final = Query(
    "metadata.key",
    TEXT,
    "Only domains whose `metadata` has this text under the key, which takes the place of `key`: `metadata.plan=pro`."
    " The answer is a part of the list in the order of names; with `status` it can hold fewer than asked for.",
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


def back_in_time(schema: Mapping[str, object]) -> tuple[Query, Query, Query]:
    """Return the parameters of a list that goes back in time; `schema` is that of its `next`."""
    before = Query("before", schema, "The same as `after`, by its name in 1.0.0.")
    return (Query("after", schema, "`next` of the part before."), before, LIMIT)


PRODUCT_ERRORS: Final = (400, 404, 409, 502)
"""Of changes of Power and Secure: 502 always, or by HTTP's kinds, as the application's `errorStatus` has it."""
RECORD: Final = {"type": "CNAME", "host": "shop", "value": "apps.acme.example", "ttl": 300}
FLOW: Final = {"id": "The flow's id."}
APPLICATION_ID: Final = "4f6c1a9e2b7d0385"
DIGEST: Final = "9d5e3c0b7a41f286" * 4
EXAMPLE_IDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "domain": "shop.customer.example",
        "domain_name": "customer.example",
        "request_id": "bat_6b1f0c9d3e7a58244c0d9be1f7a35260",
        "key": "key_5d3a9f0e71c8b264",
        "organisation": "org_2c9e7f04a1d8b653",
        "user": "usr_81b4d0c6f3e95a72",
        "The flow's id.": "flw_0c5b7e1d9a3f48620e7bd15c94a2f836",
        "The configuration's id.": "cfg_7e02a9d4c1b85f360d9e4ab7c2f15083",
        "The event's id.": "evt_0192c3d84e7a0f6b51d2a938c47be60f15",
        "The link's id.": "Jx8mQ2vTn5Rk0LbY7sWcZg",
        "What the link ends with.": "Jx8mQ2vTn5Rk0LbY7sWcZg",
    }
)
"""What samples have in the place of a path's names; of an ``id``, by the words that explain it."""
