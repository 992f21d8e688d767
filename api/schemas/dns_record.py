"""The shape of a DNS record in bodies and answers; `common.records` has the rules.

A record of an answer is a dict of this type. Of bodies, which `read_record` reads, the types only document them.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from api.rules.record_rules import check_record
from common.records import LARGEST_TTL, InvalidRecord, Record, RecordType, parse_record

_Host = Annotated[str, Field(min_length=1, examples=["shop"])]
_Value = Annotated[str, Field(min_length=1, examples=["apps.acme.example"])]


@with_config(ConfigDict(extra="ignore"))
class DnsRecord(TypedDict):
    """A DNS record, its `host` relative to the apex."""

    type: RecordType
    host: _Host
    """`@` is the apex; a host that ends with a dot is the whole name."""
    value: _Value
    ttl: Annotated[int, Field(gt=0, le=LARGEST_TTL, examples=[300])]
    """Seconds."""
    priority: NotRequired[str | None]
    """Of MX records only."""


@with_config(ConfigDict(extra="ignore"))
class ConnectRecord(TypedDict):
    """A DNS record of the connect modal's configuration; a domain check takes its `ttl` as text too."""

    type: RecordType
    host: _Host
    """`@` is the apex; a host that ends with a dot is the whole name."""
    value: _Value
    ttl: Annotated[int | str, Field(examples=[300])]
    """Seconds."""
    priority: NotRequired[str | None]
    """Of MX records only."""
    ssl: NotRequired[bool | None]
    """Enrol the host in Secure once the record is live."""
    applicationUrl: NotRequired[str | None]
    redirectTo: NotRequired[str | None]
    powerRootPathAccess: NotRequired[list[str] | None]
    monitor: NotRequired[bool | None]
    """Track the record with Monitor."""


def read_record(given: Any, domain: str | None = None) -> Record:
    """Read the record of a body; with `domain`, one that the domain's zone can hold. Raises: ValueError."""
    try:
        record = parse_record(given)
        if domain is not None:
            check_record(record, domain)
    except InvalidRecord as error:
        raise ValueError(str(error)) from error
    return record
