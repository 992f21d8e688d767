"""What a diagnosis says of the DNS: whose the domain is, where it leads, and the records for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

from typing_extensions import TypedDict

from api.services import diagnosis as service
from api.services.diagnosis import Dns, SeenRecord
from common.dns import Outcome
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict, txt_record

OwnershipStatus = Literal[
    "yours", "free", "moves here", "not proven", "reserved", "blocked", "suspended", "another application's"
]


class UnknownPart(TypedDict):
    """A part that could not be observed."""

    status: Literal["unknown"]


UNKNOWN: Final[UnknownPart] = {"status": "unknown"}


class DiagnosedRecord(TypedDict):
    """A record as the DNS has it, or should have it."""

    type: str
    host: str
    value: str


class DiagnosedDelegation(DiagnosedRecord):
    """The record that delegates the domain's ACME challenge."""

    is_seen: bool
    """The record is in the DNS, as it should be."""


class DiagnosedOwnership(TypedDict):
    """Whether the application may have the domain."""

    status: OwnershipStatus
    claim: OwnershipClaim | None
    """How the DNS shows whose the domain is."""
    txt_record: DiagnosedRecord | None
    """Proves the domain to be the application's, whatever else leads here; null for a wildcard, which only the
    delegation proves."""
    delegation: DiagnosedDelegation | None
    """Proves the domain too, and lets a CA validate it wherever its visitors are led; null where the installation has
    no zone for it, or the application neither holds nor prepares the domain, which is no wildcard."""


class DiagnosedTarget(TypedDict):
    """The application's cname target: the partner's part."""

    status: Literal["ok", "wrong", "unknown"]
    expected_one_of: list[DiagnosedRecord]
    found: list[DiagnosedRecord]
    seen_here_at: datetime | None
    """When it was last seen to lead here."""
    elsewhere_since: datetime | None
    has_lapsed: bool
    """It reserves no domain any more."""


class DiagnosedDns(TypedDict):
    """Where the domain leads, and where it should lead."""

    status: Literal["ok", "ok, behind a proxy", "missing", "wrong", "unknown"]
    code: str | None
    """Why the domain could not be resolved."""
    expected: list[DiagnosedRecord]
    found: list[DiagnosedRecord]
    cname_target: DiagnosedTarget | None
    """Null for a root."""


_OWNERSHIP: Final[Mapping[OwnershipVerdict, OwnershipStatus]] = MappingProxyType(
    {
        OwnershipVerdict.ENROL: "free",
        OwnershipVerdict.MOVE: "moves here",
        OwnershipVerdict.UNPROVEN: "not proven",
        OwnershipVerdict.UNDELEGATED: "not proven",
        OwnershipVerdict.RESERVED: "reserved",
        OwnershipVerdict.BLOCKED: "blocked",
        OwnershipVerdict.SUSPENDED: "suspended",
        OwnershipVerdict.HELD: "another application's",
        OwnershipVerdict.LEADS_TO_HOLDER: "another application's",
        OwnershipVerdict.UNKNOWN: "another application's",
    }
)


def ownership_part(diagnosis: service.Diagnosis) -> DiagnosedOwnership | UnknownPart:
    """Render whether the application may have the domain."""
    ownership = diagnosis.ownership
    if ownership is None:
        return UNKNOWN
    is_held = diagnosis.holding is not None and bool(diagnosis.holding.domains)
    host, value = txt_record(diagnosis.name.text, ownership.application_id)
    return {
        "status": "yours" if is_held else _OWNERSHIP[ownership.verdict],
        "claim": ownership.claim,
        "txt_record": None if diagnosis.name.is_wildcard else {"type": "TXT", "host": host, "value": value},
        "delegation": _delegation(ownership),
    }


def _delegation(ownership: service.Ownership) -> DiagnosedDelegation | None:
    record = ownership.delegation
    if record is None:
        return None
    return {"type": "CNAME", "host": record.host, "value": record.value, "is_seen": ownership.is_delegated}


def dns_part(dns: Dns | None) -> DiagnosedDns | UnknownPart:
    """Render where the domain leads, and where it should lead."""
    if dns is None:
        return UNKNOWN
    return {
        "status": _dns_status(dns),
        "code": dns.findings.unresolved.value if dns.findings.unresolved else None,
        "expected": _records(dns.expected),
        "found": _records(dns.found),
        "cname_target": _cname_target(dns),
    }


def _cname_target(dns: Dns) -> DiagnosedTarget | None:
    if not dns.target_expected:
        return None
    return {
        "status": _target_status(dns.findings.step_one),
        "expected_one_of": _records(dns.target_expected),
        "found": _records(dns.target_found),
        "seen_here_at": dns.sighting.here_at if dns.sighting else None,
        "elsewhere_since": dns.sighting.elsewhere_since if dns.sighting else None,
        "has_lapsed": dns.sighting is not None and dns.sighting.has_lapsed,
    }


def _dns_status(dns: Dns) -> Literal["ok", "ok, behind a proxy", "missing", "wrong", "unknown"]:
    findings = dns.findings
    if findings.unresolved is Outcome.NO_NAME:
        return "missing"
    if findings.unresolved is Outcome.CHAIN:
        return "wrong"
    if findings.unresolved is not None:
        return "unknown"
    if not findings.is_pointed:
        return "wrong"
    seen = {(record.type, record.value) for record in dns.found}
    direct = any((record.type, record.value) in seen for record in dns.expected)
    return "ok" if direct else "ok, behind a proxy"


def _target_status(step_one: Outcome) -> Literal["ok", "wrong", "unknown"]:
    if not step_one.is_known:
        return "unknown"
    return "ok" if step_one is Outcome.RECORDS else "wrong"


def _records(records: Iterable[SeenRecord]) -> list[DiagnosedRecord]:
    return [{"type": record.type, "host": record.host, "value": record.value} for record in records]
