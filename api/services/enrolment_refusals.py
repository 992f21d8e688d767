"""Refused enrolments as the API answers them: from a code to the row of `api.errors`, and a hint.

The hint is the partner's in `common.enrolment.refusal_words`, or here where it is made of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from api.errors import (
    ALREADY_POWERED,
    ALREADY_SECURED,
    DOMAIN_NOT_VALID,
    INVALID_APPLICATION_URL,
    INVALID_REDIRECT,
    POWERED_TOO_OFTEN,
    PROVISIONED_TOO_OFTEN,
    REVIEW_POWER,
    REVIEW_SSL,
    STEP_ONE,
    UNREACHABLE_ORIGIN,
    Refusal,
    Refused,
)
from api.services import ownership_hints as hints
from common.db.applications import Application
from common.enrolment.outcome import EnrolmentCode as Code
from common.enrolment.outcome import EnrolmentRefused
from common.enrolment.ownership import OwnershipVerdict
from common.enrolment.refusal_words import WORDS
from common.enrolment.request import EnrolmentRequest, cname_target_of
from common.urls import parse_application_url


@dataclass(frozen=True, slots=True)
class _Case:
    application: Application
    request: EnrolmentRequest
    refused: EnrolmentRefused


_Hint: TypeAlias = Callable[[_Case], str]


def _detail(case: _Case) -> str:
    return case.refused.detail


def _held(case: _Case) -> str:
    application, request = case.application, case.request
    target = None if case.refused.is_outranked else cname_target_of(application, request.product)
    return hints.held(OwnershipVerdict(case.refused.code.value), request.name, application.id, target)


def _unproven(case: _Case) -> str:
    return hints.unproven(case.request.name, case.application.id)


def _diagnosis(case: _Case) -> str:
    return f"GET /domains/{case.request.name.text}/diagnosis shows what is missing"


def _enrolled(case: _Case) -> str:
    if case.request.product == "power":
        return "this application powers it already: PUT /power changes it"
    return "PUT /ssl changes the origin or the redirect, or renews the certificate"


def _origin_path(case: _Case) -> str:
    parsed = parse_application_url(case.refused.detail)
    return (
        f"Secure forwards paths unchanged, so the applicationUrl has none: send {parsed.scheme}://{parsed.authority},"
        f" or use Power to serve a domain from {parsed.path}"
    )


@dataclass(frozen=True, slots=True)
class _Row:
    of_power: Refusal
    of_secure: Refusal
    hint: _Hint | None = None


def _both(refusal: Refusal, hint: _Hint | None = None) -> _Row:
    return _Row(refusal, refusal, hint)


ROWS: Final[Mapping[Code, _Row]] = {
    Code.ROOT: _both(DOMAIN_NOT_VALID),
    Code.RESERVED: _both(DOMAIN_NOT_VALID),
    Code.BLOCKED: _both(DOMAIN_NOT_VALID),
    Code.SUSPENDED: _both(DOMAIN_NOT_VALID),
    Code.HELD: _both(ALREADY_POWERED, _held),
    Code.LEADS_TO_HOLDER: _both(ALREADY_POWERED, _held),
    Code.HELD_UNKNOWN: _both(ALREADY_POWERED, _held),
    Code.STEP_ONE: _both(STEP_ONE),
    Code.NOT_ELIGIBLE: _Row(REVIEW_POWER, REVIEW_SSL, _diagnosis),
    Code.NOT_ASKED: _Row(REVIEW_POWER, REVIEW_SSL, _diagnosis),
    Code.UNPROVEN: _Row(REVIEW_POWER, REVIEW_SSL, _unproven),
    Code.UNDELEGATED: _Row(REVIEW_POWER, REVIEW_SSL, _detail),
    Code.ENROLLED: _Row(ALREADY_POWERED, ALREADY_SECURED, _enrolled),
    Code.ENROLLED_OTHERWISE: _Row(ALREADY_POWERED, ALREADY_SECURED, _enrolled),
    Code.ORDERING: _Row(REVIEW_POWER, REVIEW_SSL),
    Code.TOO_OFTEN: _Row(POWERED_TOO_OFTEN, PROVISIONED_TOO_OFTEN),
    Code.NO_ORIGIN: _both(INVALID_APPLICATION_URL),
    Code.ORIGIN_PATH: _both(INVALID_APPLICATION_URL, _origin_path),
    Code.ORIGIN_REFUSED: _both(INVALID_APPLICATION_URL, _detail),
    Code.ORIGIN_UNREACHABLE: _both(UNREACHABLE_ORIGIN, _detail),
    Code.LOOP: _both(INVALID_REDIRECT),
}
"""Of every code."""


def to_refused(application: Application, request: EnrolmentRequest, refused: EnrolmentRefused) -> Refused:
    """Return the error that POST and PUT of Power and Secure answer. How a DNS question ended is its code, if any."""
    row, case = ROWS[refused.code], _Case(application, request, refused)
    code = (refused.outcome or refused.code).value
    hint = row.hint(case) if row.hint is not None else WORDS[refused.code].partner
    of_product = row.of_power if request.product == "power" else row.of_secure
    return Refused(of_product, code=code, hint=hint, retry_after_seconds=refused.retry_after_seconds)
