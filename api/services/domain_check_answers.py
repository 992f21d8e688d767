"""What ``/checkdomain`` and ``/checkrecords`` found, as JSON."""

from __future__ import annotations

from typing import Any

from api.schemas.evidence import ServerNames, hide_private
from api.services.domain_check import Assessed, DomainCheck
from api.services.record_check import CheckedRecord
from common.dns.evidence import Statement
from common.domain_check.conflicts import Conflict
from common.records import as_json


def domain_check(found: DomainCheck) -> dict[str, Any]:
    capabilities = found.current.provider.capabilities
    shown: dict[str, Any] = _provider(found.current) | {
        "NSSupport": {"root": capabilities.ns_at_root, "subdomains": capabilities.ns_at_subdomains},
        "expired": found.registration.has_expired,
        "registered": found.registration.is_registered,
    }
    if found.zone_provider is not None:
        shown["authoritativeDnsProvider"] = _provider(found.zone_provider)
    if found.conflicts is not None:
        shown["recordConflicts"] = [_conflict(each) for each in found.conflicts] or None
    return shown


def _provider(assessed: Assessed) -> dict[str, Any]:
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


def _conflict(conflict: Conflict) -> dict[str, Any]:
    record = conflict.record
    shown = {"host": record.host, "type": record.type, "value": record.value}
    if record.priority is not None:
        shown["priority"] = record.priority
    shown |= {"code": conflict.rule.value, "reason": conflict.reason}
    return shown if conflict.suggested is None else shown | {"suggestedValue": conflict.suggested}


def record_check(domain: str, checked: list[CheckedRecord]) -> dict[str, Any]:
    names = ServerNames()
    return {"domain": domain, "records": [_checked(each, names) for each in checked]}


def _checked(checked: CheckedRecord, names: ServerNames) -> dict[str, Any]:
    until = checked.cached_until
    return as_json(checked.record) | {
        "status": checked.status.value,
        "answers": [_statement(each, names) for each in checked.statements],
        "cachedUntil": None if until is None else until.isoformat(timespec="seconds"),
    }


def _statement(statement: Statement, names: ServerNames) -> dict[str, Any]:
    """A server of the operator's own network is numbered, and shows no private address."""
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
