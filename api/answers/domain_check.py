"""What is known of a domain before it is connected, and which records are propagated."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, cast

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from api.schemas.evidence import ServerNames, hide_private
from api.services import record_check as service
from api.services.domain_check import Assessed, DomainCheck
from api.services.record_check import RecordStatus
from common.dns.evidence import Statement
from common.domain_check.conflicts import Conflict
from common.domain_check.providers import SocialLogin
from common.records import RecordType, as_json

TimeText = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time that is rendered to the second or the millisecond."""


class ProviderAnswer(TypedDict):
    """A DNS provider, and what can be done there."""

    provider: str
    setupType: Literal["automatic", "manual"]
    """`automatic`: this installation can set records there."""
    wwwRedirect: bool
    cnameFlattening: bool
    wildcardSupport: bool
    subdomainCnameNsOverride: bool
    spfOverrideSupport: bool
    caaSupport: bool
    supportsSocialLogin: SocialLogin


class NsSupport(TypedDict):
    """Where the provider takes NS records."""

    root: bool
    subdomains: bool


class RecordInTheWay(TypedDict):
    """A record as the zone has it."""

    host: str
    type: RecordType
    value: str
    priority: NotRequired[str | None]


class RecordConflict(RecordInTheWay):
    """An existing record that stands in the way."""

    code: str
    reason: str
    suggestedValue: NotRequired[str | None]
    """What to publish instead, where records can be merged."""


class DomainState(TypedDict):
    """What the registry states of the domain."""

    NSSupport: NsSupport
    expired: bool
    registered: bool


class DomainCheckAnswer(ProviderAnswer, DomainState):
    """What is known of a domain before its records are set."""

    authoritativeDnsProvider: NotRequired[ProviderAnswer | None]
    """Only where the request has NS records."""
    recordConflicts: NotRequired[list[RecordConflict] | None]
    """Only where `checkConflicts` is true; null: there are none."""


class ServerAnswer(TypedDict):
    """What one name server answered."""

    role: str
    server: str
    outcome: str
    values: list[str]
    ttl: int | None
    at: TimeText


class CheckedRecord(TypedDict):
    """A record, and whether it is propagated."""

    type: RecordType
    host: str
    value: str
    ttl: int
    priority: NotRequired[str | None]
    status: RecordStatus
    answers: list[ServerAnswer]
    cachedUntil: TimeText | None
    """When the last old answer leaves the caches."""


class RecordCheckAnswer(TypedDict):
    """Which records of a domain are propagated."""

    domain: str
    records: list[CheckedRecord]


def domain_check(found: DomainCheck) -> DomainCheckAnswer:
    """Render a domain check; the zone's provider and the conflicts only where they were asked for."""
    capabilities = found.current.provider.capabilities
    state: DomainState = {
        "NSSupport": {"root": capabilities.ns_at_root, "subdomains": capabilities.ns_at_subdomains},
        "expired": found.registration.has_expired,
        "registered": found.registration.is_registered,
    }
    answer = cast("DomainCheckAnswer", {**_provider(found.current), **state})
    if found.zone_provider is not None:
        answer["authoritativeDnsProvider"] = _provider(found.zone_provider)
    if found.conflicts is not None:
        answer["recordConflicts"] = [_conflict(each) for each in found.conflicts] or None
    return answer


def _provider(assessed: Assessed) -> ProviderAnswer:
    capabilities = assessed.provider.capabilities
    return {
        "provider": assessed.provider.name,
        "setupType": assessed.setup_type,
        "wwwRedirect": capabilities.www_redirect,
        "cnameFlattening": capabilities.cname_flattening,
        "wildcardSupport": capabilities.wildcards,
        "subdomainCnameNsOverride": capabilities.subdomain_cname_ns_override,
        "spfOverrideSupport": capabilities.spf_override,
        "caaSupport": capabilities.caa,
        "supportsSocialLogin": capabilities.social_login,
    }


def _conflict(conflict: Conflict) -> RecordConflict:
    record = conflict.record
    place: RecordInTheWay = {"host": record.host, "type": record.type, "value": record.value}
    if record.priority is not None:
        place["priority"] = record.priority
    answer = cast("RecordConflict", {**place, "code": conflict.rule.value, "reason": conflict.reason})
    if conflict.suggested is not None:
        answer["suggestedValue"] = conflict.suggested
    return answer


def record_check(domain: str, checked: list[service.CheckedRecord]) -> RecordCheckAnswer:
    """Render which records are propagated, with what each server answered."""
    names = ServerNames()
    return {"domain": domain, "records": [_checked(each, names) for each in checked]}


def _checked(checked: service.CheckedRecord, names: ServerNames) -> CheckedRecord:
    until = checked.cached_until
    checks = {
        "status": checked.status,
        "answers": [_statement(each, names) for each in checked.statements],
        "cachedUntil": None if until is None else until.isoformat(timespec="seconds"),
    }
    return cast("CheckedRecord", as_json(checked.record) | checks)


def _statement(statement: Statement, names: ServerNames) -> ServerAnswer:
    """Render an answer: a server of the operator's own network is numbered, and shows no private address."""
    server = names.shown(statement.role, statement.server)
    values = list(statement.answer.values)
    return {
        "role": statement.role,
        "server": server,
        "outcome": statement.answer.outcome.value,
        "values": values if server == statement.server else hide_private(values),
        "ttl": statement.answer.ttl_seconds or None,
        "at": statement.at.isoformat(timespec="milliseconds"),
    }
