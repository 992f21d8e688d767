"""Parameters and examples that several areas share."""

from __future__ import annotations

from typing import Final

from api.reference.operations.operation import Query
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE

SIZE: Final = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE, "default": DEFAULT_SIZE}
TEXT: Final = {"type": "string"}
DOMAIN: Final = Query("domain", TEXT, "Asks about one domain; the list's parameters do not count then.")
ROOT: Final = Query("rootDomain", {"type": "boolean", "default": False}, "Asks about the domain's root instead.")
PAGE: Final = (
    Query("page", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0}, "From zero."),
    Query("size", SIZE, "Of a page."),
    Query("status", {"type": "string", "enum": ["active", "inactive"]}, "Only these."),
)
LIMIT: Final = Query("limit", SIZE, "Of a page.")
RECORD: Final = {"type": "CNAME", "host": "shop", "value": "apps.acme.example", "ttl": 300}
FLOW: Final = {"id": "The flow's id."}
