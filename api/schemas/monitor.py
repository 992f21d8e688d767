"""Monitor's bodies, queries and answers (SPEC 2.8, 2.9, 4.4).

Domains are apexes in canonical form once they are parsed, subdomains canonical labels before them. A name in a path
that is none is simply not monitored; in a body it is refused. An entry of a batch is the body of the single request;
what is wrong with it is that entry's failure, not the batch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, TypeVar

from multidict import MultiMapping
from pydantic import AfterValidator, FailFast, Field, PlainValidator, ValidationError, ValidationInfo, field_validator

from api.errors import Refused, invalid_parameter
from api.schemas import queries
from api.schemas.bodies import Strict
from common.addresses import forms, is_public
from common.db.batches import NotUnderstood, Progress, Unwatch, Watch
from common.db.monitor_health import Health
from common.db.monitored_domains import Key, Labels, LastCheck, MonitoredDomain
from common.errors import InvalidName
from common.names import parse_domain, parse_subdomain
from common.records import InvalidRecord, Record, parse_record
from common.settings import parse_host_port

DEFAULT_LIMIT = 10
LARGEST_LIMIT = 200
MOST_RECORDS = 500
"""Under one name: far more than a zone's worth, and a bound on what one check may ask."""
_RECORD_IN_ORDER = {"type": None, "host": None, "value": None, "ttl": None}  # and then priority, where there is one
_STATEMENT_FIELDS = ("at", "role", "server", "name", "type", "outcome", "values")
_PRIVATE = "a private address"
_PRIVATE_NETWORKS = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "::1/128",
            "fc00::/7",
            "fe80::/10",
        ),
    )
)
_LARGEST_OFFSET = 10**15
_MOST_LABEL_CHARACTERS = 1024
_MOST_NAME_CHARACTERS = 1024


def parse_apex(text: str) -> str:
    """Raises: `InvalidName`, also for a name beneath an apex."""
    name = parse_domain(text)
    if not name.is_root:
        raise InvalidName(f"not an apex: send {name.registrable} as the domain and {name.subdomain} as the subdomain")
    return name.text


# Bodies ---------------------------------------------------------------------------------------------------


def _apex(text: str) -> str:
    try:
        return parse_apex(text)
    except InvalidName as error:
        raise ValueError(str(error)) from error


def _record(given: Any) -> Record:
    try:
        return parse_record(given)
    except InvalidRecord as error:
        raise ValueError(str(error)) from error


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("characters that cannot be kept")
    return text


Apex = Annotated[str, AfterValidator(_apex)]
Label = Annotated[str, Field(max_length=_MOST_LABEL_CHARACTERS), AfterValidator(_storable)]
DnsRecords = Annotated[
    list[Annotated[Record, PlainValidator(_record)]],
    FailFast(),
    Field(min_length=1, max_length=MOST_RECORDS, alias="dnsRecords"),
]


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
        """Whoever sends the whole name means what stands before the domain, not a name that ends with it twice."""
        domain = info.data.get("domain")
        if subdomain is None or domain is None or not f".{subdomain}".endswith(f".{domain}"):
            return subdomain
        before = subdomain.removesuffix(domain).removesuffix(".")
        raise ValueError(f"not relative to the domain: send {before}" if before else "the domain itself has none")

    @property
    def labels(self) -> Labels:
        return Labels(self.user_id, self.job_id, self.user_email)


class UpdateBody(NameBody):
    """PUT /monitor/domains."""

    records: DnsRecords
    user_id: Label | None = Field(None, alias="userId")


class UnwatchBody(NameBody):
    """DELETE /monitor/domains, and each entry of its batch."""

    only_if_empty: bool | None = Field(None, alias="deleteOnlyIfEmpty")


class RecordsBody(Strict):
    """The three bodies of /monitor/domains/:domain_name/records."""

    records: DnsRecords


class BatchBody(Strict):
    """What is in the entries is looked at one by one."""

    domains: list[Any] | None = None


# Entries of a batch ---------------------------------------------------------------------------------------

Entry = TypeVar("Entry", WatchBody, UnwatchBody)
Request = TypeVar("Request", Watch, Unwatch)


def parse_watch(entry: Any) -> Watch | NotUnderstood:
    return _parse_entry(
        entry, WatchBody, lambda body: Watch(body.domain, body.subdomain, tuple(body.records), body.labels)
    )


def parse_unwatch(entry: Any) -> Unwatch | NotUnderstood:
    return _parse_entry(entry, UnwatchBody, lambda body: Unwatch(body.domain, body.subdomain, bool(body.only_if_empty)))


def _parse_entry(entry: Any, schema: type[Entry], request: Callable[[Entry], Request]) -> Request | NotUnderstood:
    try:
        return request(schema.model_validate(entry))
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False, include_context=False)[0]["msg"]
        named = entry if isinstance(entry, dict) else {}
        return NotUnderstood(_as_sent(named.get("domain")), _as_sent(named.get("subdomain")), reason)


def _as_sent(name: Any) -> str | None:
    """A name as its sender will know it again; none if it cannot be kept."""
    return name if isinstance(name, str) and len(name) <= _MOST_NAME_CHARACTERS and "\0" not in name else None


# Queries --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MonitorQuery:
    """One page of the list; `dates` are its first day and its last."""

    offset: int
    limit: int
    dates: tuple[date, date] | None


def parse_monitor_query(query: MultiMapping[str]) -> MonitorQuery:
    """Raises: `Refused` that names the parameter."""
    return MonitorQuery(
        offset=queries.parse_integer(query, "offset", default=0, least=0, most=_LARGEST_OFFSET),
        limit=queries.parse_integer(query, "limit", default=DEFAULT_LIMIT, least=1, most=LARGEST_LIMIT),
        dates=_parse_dates(query),
    )


def _parse_dates(query: MultiMapping[str]) -> tuple[date, date] | None:
    first, last = (queries.parse_optional_date(query, name) for name in ("from_date", "to_date"))
    if first is None and last is None:
        return None
    if first is None or last is None:
        missing = "to_date" if last is None else "from_date"
        raise Refused(invalid_parameter(missing), hint="from_date and to_date are sent together")
    return first, last


def parse_name_query(domain: str, query: MultiMapping[str]) -> tuple[str, str | None] | None:
    """The name that a path or ``?domain=`` with a ``subdomain`` beside it means; None if nothing can have that name.

    Raises: `Refused` for a subdomain sent twice.
    """
    subdomain = queries.parse_optional_text(query, "subdomain")
    try:
        apex = parse_apex(domain)
        return apex, None if subdomain is None else parse_subdomain(subdomain, apex)
    except InvalidName:
        return None


# Answers --------------------------------------------------------------------------------------------------


def monitored_domain(domain: MonitoredDomain) -> dict[str, Any]:
    """SPEC 2.8."""
    return {
        "id": domain.id,
        "domain": domain.key.domain,
        "subdomain": domain.key.subdomain,
        "date_added": domain.date_added.date(),
        "dns_records": dns_records(domain.dns_records),
        "records_present": None if domain.records_present is None else dns_records(domain.records_present),
        "records_missing": None if domain.records_missing is None else dns_records(domain.records_missing),
        "missing_records_last_detected": domain.missing_records_last_detected,
        "last_checked_at": domain.last_checked_at,
        "is_active": True,
        "user_id": domain.labels.user_id,
        "job_id": domain.labels.job_id,
        "source": domain.source,
        "application_id": domain.key.application_id,
    }


def dns_records(stored: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """SPEC 2.1, its fields in its order, which Postgres does not keep."""
    return [{**_RECORD_IN_ORDER, **record} for record in stored]


def last_check(key: Key, check: LastCheck) -> dict[str, Any]:
    """What the last check went by: each answer it got, oldest first."""
    return {
        "domain": key.domain,
        "subdomain": key.subdomain,
        "state": check.state,
        "last_checked_at": check.checked_at,
        "evidence": None if check.evidence is None else _shown(check.evidence),
    }


def _shown(statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Servers at addresses of the operator's own network are told apart, but not told; nor are the private addresses
    that such a server knows: anybody may have any name watched, those of that network too."""
    hidden: dict[tuple[str, str], str] = {}
    shown = []
    for statement in statements:
        role, server = statement["role"], statement["server"]
        if not all(map(is_public, forms(ip_address(parse_host_port(server).host)))):
            number = 1 + sum(of_role == role for of_role, _ in hidden)
            server = hidden.setdefault((role, server), f"{role} {number}")
        fields = {**statement, "server": server}
        if server != statement["server"] and "values" in statement:
            fields["values"] = _without_private(statement["values"])
        shown.append({field: fields[field] for field in _STATEMENT_FIELDS if field in fields})
    return shown


def _without_private(values: Sequence[str]) -> list[str]:
    return [_PRIVATE if _is_private(value) else value for value in values]


def _is_private(value: str) -> bool:
    try:
        address = ip_address(value)
    except ValueError:
        return False
    return any(form in network for form in forms(address) for network in _PRIVATE_NETWORKS)


def batch_status(batch_id: str, progress: Progress) -> dict[str, Any]:
    """SPEC 2.9."""
    status = ("FAILED" if progress.failed else "SUCCESS") if progress.is_over else "IN_PROGRESS"
    content: dict[str, Any] = {
        "batchId": batch_id,
        "applicationId": progress.application_id,
        "status": status,
        "successfulDomains": progress.succeeded,
    }
    if progress.failed:
        failed = [{"domain": domain, "subdomain": subdomain} for domain, subdomain in progress.failed]
        content["failedDomains"] = {"count": len(failed), "domains": failed}
    return content


def service_status(health: Health) -> dict[str, Any]:
    """SPEC 2.10."""
    return {"status": "healthy" if health.is_healthy else "unhealthy", "executedAt": health.executed_at}
