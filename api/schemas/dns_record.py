"""The shape of a DNS record in bodies and answers; `common.records` has the rules."""

from __future__ import annotations

from pydantic import Field

from api.schemas.described import Described
from common.records import LARGEST_TTL, RecordType


class DnsRecord(Described):
    """A DNS record, its `host` relative to the apex."""

    type: RecordType
    host: str = Field(min_length=1, examples=["shop"])
    """`@` is the apex; a host that ends with a dot is the whole name."""
    value: str = Field(min_length=1, examples=["apps.acme.example"])
    ttl: int = Field(gt=0, le=LARGEST_TTL, examples=[300])
    """Seconds."""
    priority: str | None = None
    """Of MX records only."""


class ConnectRecord(DnsRecord):
    """A DNS record of the connect modal's configuration; a domain check takes its `ttl` as text too."""

    ttl: int | str = Field(examples=[300])  # type: ignore[assignment]
    """Seconds."""
    ssl: bool | None = None
    """Enrol the host in Secure once the record is live."""
    applicationUrl: str | None = None  # noqa: N815 - as it is sent
    redirectTo: str | None = None  # noqa: N815
    powerRootPathAccess: list[str] | None = None  # noqa: N815
    monitor: bool | None = None
    """Track the record with Monitor."""
