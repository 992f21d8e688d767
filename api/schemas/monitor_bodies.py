"""Monitor's bodies, and the entries of its batches.

Domains are apexes in canonical form once they are parsed, subdomains canonical labels before them. An entry of a batch
is the body of the single request; what is wrong with it is that entry's failure, not the batch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, FailFast, Field, PlainValidator, ValidationError, ValidationInfo, field_validator

from api.rules.record_rules import MOST_RECORDS, check_size
from api.schemas.bodies import Strict, describe
from api.schemas.dns_record import DnsRecord, read_record
from common.db.batches import InvalidItem, Unwatch, Watch
from common.db.monitored_domains import Labels
from common.errors import InvalidName
from common.names import parse_domain, parse_subdomain
from common.records import InvalidRecord, Record

_MOST_LABEL_CHARACTERS = 1024
_MOST_NAME_CHARACTERS = 1024


def parse_apex(text: str) -> str:
    """Return the apex in canonical form. Raises: `InvalidName`, also for a name beneath an apex."""
    name = parse_domain(text)
    if not name.is_root:
        raise InvalidName(f"not an apex: send {name.registrable} as the domain and {name.subdomain} as the subdomain")
    return name.text


def _apex(text: str) -> str:
    try:
        return parse_apex(text)
    except InvalidName as error:
        raise ValueError(str(error)) from error


def _possible_record(given: Any, info: ValidationInfo) -> Record:
    """Read a record that the domain's zone can hold.

    The domain is the body's, or the path's, which is then the context. One that is not valid is refused itself.
    """
    return read_record(given, info.context or info.data.get("domain"))


def _bounded(records: list[Record]) -> list[Record]:
    try:
        check_size(records)
    except InvalidRecord as error:
        raise ValueError(str(error)) from error
    return records


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("characters that cannot be kept")
    return text


Apex = Annotated[str, AfterValidator(_apex)]
Label = Annotated[str, Field(max_length=_MOST_LABEL_CHARACTERS), AfterValidator(_storable)]
_Several = Field(min_length=1, max_length=MOST_RECORDS, alias="dnsRecords")
_PossibleRecord = Annotated[Record, PlainValidator(_possible_record, json_schema_input_type=DnsRecord)]
_AnyRecord = Annotated[Record, PlainValidator(read_record, json_schema_input_type=DnsRecord)]
DnsRecords = Annotated[list[_PossibleRecord], FailFast(), _Several, AfterValidator(_bounded)]
AnyDnsRecords = Annotated[list[_AnyRecord], FailFast(), _Several]
"""Also those that no zone can hold: they may have been taken before that was refused, and can be removed."""


class NameBody(Strict):
    """A monitored name, as every body that is not about a domain in the path begins."""

    domain: Apex
    subdomain: str | None = None

    @field_validator("subdomain")
    @classmethod
    def _canonical(cls, subdomain: str | None, info: ValidationInfo) -> str | None:
        if subdomain is None or "domain" not in info.data:
            return subdomain
        try:
            return parse_subdomain(subdomain, info.data["domain"])
        except InvalidName as error:
            raise ValueError(str(error)) from error


class WatchBody(NameBody):
    """POST /monitor/domains, and each entry of its batch."""

    records: DnsRecords
    user_id: Label | None = Field(None, alias="userId")
    job_id: Label | None = Field(None, alias="jobId")
    user_email: Label | None = Field(None, alias="userEmail")

    @field_validator("subdomain")
    @classmethod
    def _relative(cls, subdomain: str | None, info: ValidationInfo) -> str | None:
        """Refuse a subdomain that repeats the domain: the client means the labels before it."""
        domain = info.data.get("domain")
        if subdomain is None or domain is None or not f".{subdomain}".endswith(f".{domain}"):
            return subdomain
        before = subdomain.removesuffix(domain).removesuffix(".")
        raise ValueError(f"not relative to the domain: send {before}" if before else "the domain itself has none")

    @property
    def labels(self) -> Labels:
        """Return the partner's labels of the domain."""
        return Labels(self.user_id, self.job_id, self.user_email)


class UpdateBody(NameBody):
    """PUT /monitor/domains."""

    records: DnsRecords
    user_id: Label | None = Field(None, alias="userId")


class UnwatchBody(NameBody):
    """DELETE /monitor/domains, and each entry of its batch."""

    only_if_empty: bool | None = Field(None, alias="deleteOnlyIfEmpty")


class RecordsBody(Strict):
    """POST and PUT /monitor/domains/:domain_name/records. Its context is the domain."""

    records: DnsRecords


class RemovedRecordsBody(Strict):
    """DELETE /monitor/domains/:domain_name/records."""

    records: AnyDnsRecords


class BatchBody(Strict):
    """What is in the entries is looked at one by one."""

    domains: list[Any] | None = None


# Entries of a batch ---------------------------------------------------------------------------------------

Entry = TypeVar("Entry", WatchBody, UnwatchBody)
Request = TypeVar("Request", Watch, Unwatch)


def parse_watch(entry: Any) -> Watch | InvalidItem:
    """Read an entry of a batch that monitors domains."""
    return _parse_entry(
        entry, WatchBody, lambda body: Watch(body.domain, body.subdomain, tuple(body.records), body.labels)
    )


def parse_unwatch(entry: Any) -> Unwatch | InvalidItem:
    """Read an entry of a batch that monitors domains no longer."""
    return _parse_entry(entry, UnwatchBody, lambda body: Unwatch(body.domain, body.subdomain, bool(body.only_if_empty)))


def _parse_entry(entry: Any, schema: type[Entry], request: Callable[[Entry], Request]) -> Request | InvalidItem:
    try:
        return request(schema.model_validate(entry))
    except ValidationError as error:
        if not isinstance(entry, dict):
            return InvalidItem(None, None, "an entry is a JSON object")
        return InvalidItem(_as_sent(entry.get("domain")), _as_sent(entry.get("subdomain")), describe(error))


def _as_sent(name: Any) -> str | None:
    """Return a name as its sender will know it again; None if it cannot be kept."""
    return name if isinstance(name, str) and len(name) <= _MOST_NAME_CHARACTERS and "\0" not in name else None
