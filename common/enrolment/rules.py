"""What decides an enrolment besides where the name leads and whose it is. Each rule returns a refusal, or None."""

from __future__ import annotations

from collections.abc import Sequence

from common.addresses import AddressPolicy
from common.db.applications import Application
from common.db.domains import Domain, Product
from common.enrolment.domain_claims import Assessment
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.ownership import OwnershipRecord, OwnershipVerdict
from common.enrolment.redirect_loops import RedirectChain
from common.enrolment.request import EnrolmentPolicy, EnrolmentRequest
from common.errors import AddressRefused
from common.urls import InvalidUrl, parse_application_url, parse_redirect_target


def check_settings(
    request: EnrolmentRequest,
    application: Application,
    own: Sequence[Domain],
    policy: EnrolmentPolicy,
    addresses: AddressPolicy,
) -> EnrolmentRefused | None:
    """Refuse settings with which the name could not be served. `own`: what the application has of the name."""
    if request.product == "power" and request.name.is_root and not policy.powers_roots:
        return EnrolmentRefused(EnrolmentCode.ROOT)
    url = origin_of(request, application, own)
    redirect_to = request.settings.redirect_to
    if url is None and redirect_to is None:
        return EnrolmentRefused(EnrolmentCode.NO_ORIGIN)
    refused = None if url is None else check_origin_url(request.product, url, addresses)
    return refused or check_redirect(request.name.text, redirect_to)


def origin_of(request: EnrolmentRequest, application: Application, own: Sequence[Domain] = ()) -> str | None:
    """Return the origin that serves the name: the one given, that of the enrolled name, or the application's.

    Of a name whose visitors are redirected only one that is given counts.
    """
    settings = request.settings
    if settings.application_url is not None or settings.redirect_to is not None:
        return settings.application_url
    enrolled = next((each.application_url for each in own if each.product == request.product), None)
    return enrolled or application.application_url or None


def check_origin_url(product: Product, url: str, addresses: AddressPolicy) -> EnrolmentRefused | None:
    """Refuse an applicationUrl with a path in Secure, and one that states an address which may not be dialled.

    Names are looked at when they are dialled.
    """
    try:
        parsed = parse_application_url(url)
        if product == "secure" and parsed.path not in ("", "/"):
            return EnrolmentRefused(EnrolmentCode.ORIGIN_PATH, url)
        if parsed.address is not None:
            addresses.check(parsed.address, parsed.port)
    except (InvalidUrl, AddressRefused) as error:
        return EnrolmentRefused(EnrolmentCode.ORIGIN_REFUSED, str(error))
    return None


def check_redirect(domain: str, redirect_to: str | None) -> EnrolmentRefused | None:
    """Refuse a redirect of the name to itself. Longer loops are looked for when it is stored."""
    if redirect_to and RedirectChain(domain).loops_at(parse_redirect_target(redirect_to).host):
        return EnrolmentRefused(EnrolmentCode.LOOP)
    return None


def check_served(standing: OwnershipRecord) -> EnrolmentRefused | None:
    """Refuse changes of what an operator has blocked or suspended."""
    if standing.is_blocked:
        return EnrolmentRefused(EnrolmentCode.BLOCKED)
    return EnrolmentRefused(EnrolmentCode.SUSPENDED) if standing.is_suspended else None


def check_enrolled(
    request: EnrolmentRequest, own: Sequence[Domain], policy: EnrolmentPolicy
) -> EnrolmentRefused | None:
    """Refuse a name because of what the application itself has of it already.

    A name's certificate is one for both products. Where it is live, Secure has nothing to provide; where none came, or
    one lapsed, or the DNS had left, the name may be secured, again if it was before.
    """
    own = [each for each in own if not each.is_prepared]  # its DNS leads here now, so it becomes active
    match policy.if_enrolled:
        case "change":
            return None
        case "keep":
            is_other = bool(own) and not any(map(request.is_met_by, own))
            return EnrolmentRefused(EnrolmentCode.ENROLLED_OTHERWISE) if is_other else None
        case "refuse" if request.product == "power":
            is_powered = any(each.product == "power" for each in own)
            return EnrolmentRefused(EnrolmentCode.ENROLLED) if is_powered else None
        case _:
            return _check_certificate(own)


def _check_certificate(own: Sequence[Domain]) -> EnrolmentRefused | None:
    if is_live(own):
        return EnrolmentRefused(EnrolmentCode.ENROLLED)
    return EnrolmentRefused(EnrolmentCode.ORDERING) if is_ordering(own) else None


def is_live(held: Sequence[Domain]) -> bool:
    """Return whether a certificate serves the name, and its DNS leads here."""
    return any(domain.certificate == "live" and domain.departed_at is None for domain in held)


def is_ordering(held: Sequence[Domain]) -> bool:
    """Return whether a certificate of the name is on its way."""
    return any(domain.certificate == "ordering" for domain in held)


def judge(assessment: Assessment) -> EnrolmentRefused | None:
    """Refuse a name that is not the application's to have, then one that does not lead to it."""
    findings, verdict = assessment.findings, assessment.verdict
    if verdict is OwnershipVerdict.UNDELEGATED and findings.unknown is not None and not findings.unknown.is_known:
        return EnrolmentRefused(EnrolmentCode.NOT_ASKED, outcome=findings.unknown)
    if verdict not in (OwnershipVerdict.ENROL, OwnershipVerdict.MOVE, OwnershipVerdict.UNPROVEN):
        return EnrolmentRefused(EnrolmentCode(verdict.value), is_outranked=assessment.evidence.is_outranked)
    if findings.lacks_step_one:
        return EnrolmentRefused(EnrolmentCode.STEP_ONE)
    if not findings.is_eligible:
        unknown = findings.unknown
        is_open = unknown is not None and not unknown.is_known
        return EnrolmentRefused(EnrolmentCode.NOT_ASKED if is_open else EnrolmentCode.NOT_ELIGIBLE, outcome=unknown)
    return EnrolmentRefused(EnrolmentCode.UNPROVEN) if verdict is OwnershipVerdict.UNPROVEN else None
