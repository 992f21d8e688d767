"""Domain check and record check: their bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, FailFast, Field, PlainValidator, ValidationInfo, field_validator

from api.connect.resolution import PlaceholderValues, choose_domain, resolve
from api.schemas.bodies import Strict
from api.schemas.connect import ConfigurationId
from api.schemas.dns_record import ConnectRecord, read_record
from common.connect.configuration import InvalidConfiguration, parse_configuration
from common.domain_check.reading import MOST_RECORDS
from common.errors import InvalidName
from common.names import DomainName, parse_domain
from common.records import Record, as_json, owner_name

_ROUTED_TYPES = frozenset({"A", "AAAA", "CNAME"})
_HOST_IN_URL = re.compile(r"\s*+(?:[a-z][a-z0-9+.-]*+://)?(?:[^/@]*+@)?([^/:?#@\s]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RequestedRecord:
    """`ssl`: its name is to get a certificate."""

    record: Record
    ssl: bool


def parse_checked_domain(text: str) -> str:
    """Return the apex in canonical form.

    Raises: ValueError that names the apex, where the text holds a domain at all.
    """
    try:
        name = parse_domain(text.strip())
    except InvalidName as error:
        within = _domain_within(text)
        raise ValueError(f"{error}: send the apex, {within}" if within else str(error)) from error
    if not name.is_root:
        raise ValueError(f"not an apex: send {name.registrable}")
    return name.text


def _domain_within(text: str) -> str | None:
    """Return the apex in a URL, or in a name with a port or a wildcard."""
    match = _HOST_IN_URL.match(text[:2048])
    if match is None:
        return None
    try:
        name: DomainName = parse_domain(match[1].strip(".").removeprefix("*."))
    except InvalidName:
        return None
    return name.registrable


def _requested(given: Any, info: ValidationInfo) -> RequestedRecord:
    """In a domain check, ttl may be text."""
    domain = info.data.get("domain")
    if isinstance(given, dict):
        ttl = given.get("ttl")
        if isinstance(ttl, str) and re.fullmatch(r"[0-9]{1,10}", ttl, re.ASCII):
            given = given | {"ttl": int(ttl)}
        if not isinstance(given.get("ssl", False), bool):
            raise ValueError("ssl must be true or false")
    return RequestedRecord(read_record(given, domain), given.get("ssl") is True)


CheckedDomain = Annotated[str, AfterValidator(parse_checked_domain)]
RequestedRecords = Annotated[
    list[Annotated[RequestedRecord, PlainValidator(_requested, json_schema_input_type=ConnectRecord)]],
    FailFast(),
    Field(max_length=MOST_RECORDS, alias="dnsRecords"),
]


class ConfiguredBody(Strict):
    """A body before the registered configuration that it names is put below it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    configuration_id: ConfigurationId | None = Field(None, alias="configurationId")

    @property
    def given(self) -> Mapping[str, Any]:
        """Return what stands beside the id, as it was sent."""
        return self.model_extra or {}


class CheckedBody(Strict):
    """A domain and the configuration of the connect modal, of which only these keys count here.

    With `PlaceholderValues` as the context, ``dnsRecords`` are resolved as a flow does it. `configuration_id`: the
    registered configuration that the other keys stand on.
    """

    domain: CheckedDomain
    configuration_id: ConfigurationId | None = Field(None, alias="configurationId")
    power: bool | None = None
    www_redirect: bool | None = Field(None, alias="wwwRedirect")
    secure_root_domain: bool | None = Field(None, alias="secureRootDomain")
    host_required: bool | None = Field(None, alias="hostRequired")
    default_subdomain: str | None = Field(None, alias="defaultSubdomain")
    requested: RequestedRecords = Field(default_factory=list)

    @field_validator("requested", mode="before")
    @classmethod
    def _filled_in(cls, given: Any, info: ValidationInfo) -> Any:
        if given is None:
            return []
        if not isinstance(info.context, PlaceholderValues) or "domain" not in info.data:
            return given
        if not (_has_placeholder(given) or info.data.get("www_redirect") or info.data.get("secure_root_domain")):
            return given
        try:
            return _fill_in(given, info.data, info.context)
        except InvalidConfiguration as error:
            raise ValueError(f"{error.key}: expected {error}") from error

    @property
    def records(self) -> list[Record]:
        """Return the records that are to be set."""
        return [each.record for each in self.requested]


class DomainCheckBody(CheckedBody):
    """POST /checkdomain."""

    check_conflicts: bool | None = Field(None, alias="checkConflicts")

    @property
    def certificate_hosts(self) -> frozenset[str]:
        """Return the names that are to get a certificate: all that Power or Secure is to serve."""
        return frozenset(
            owner_name(each.record, self.domain)
            for each in self.requested
            if each.record.type in _ROUTED_TYPES and (self.power or each.ssl)
        )


class RecordCheckBody(CheckedBody):
    """POST /checkrecords."""

    @field_validator("requested")
    @classmethod
    def _at_least_one(cls, requested: list[RequestedRecord]) -> list[RequestedRecord]:
        if not requested:
            raise ValueError("at least one record")
        return requested

    requested: RequestedRecords


def _has_placeholder(given: Any) -> bool:
    """Also for ``dnsRecords`` as an object, which a configuration may have."""
    if not isinstance(given, list):
        return isinstance(given, dict)
    texts = [entry.get(name) for entry in given if isinstance(entry, dict) for name in ("host", "value")]
    return any(isinstance(text, str) and "{" in text for text in texts)


def _fill_in(given: Any, keys: Mapping[str, Any], around: PlaceholderValues) -> list[dict[str, Any]]:
    """Fill in the placeholders of the records. Raises: `InvalidConfiguration`."""
    configuration = parse_configuration(
        {
            "dnsRecords": given,
            "hostRequired": keys.get("host_required"),
            "defaultSubdomain": keys.get("default_subdomain"),
            "wwwRedirect": keys.get("www_redirect"),
            "secureRootDomain": keys.get("secure_root_domain"),
        }
    )
    chosen = choose_domain(configuration, keys["domain"], None)
    filled = resolve(configuration, chosen, around)
    return [as_json(each.record) | {"ssl": each.purpose.product is not None} for each in filled]
