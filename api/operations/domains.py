"""One domain: its diagnosis and its traffic."""

from __future__ import annotations

from typing import Any, Final

from api.answers.certificates import DomainCertificate, SigningRequest
from api.answers.diagnosis import Diagnosis
from api.answers.domain_details import StatusLink
from api.answers.ended_domains import EndedDomain
from api.answers.lists import ListOf
from api.answers.messages import Message
from api.answers.preparation import DomainPreparation
from api.answers.traffic import Traffic
from api.handlers.certificates import CertificateHandlers
from api.handlers.diagnosis import DiagnosisHandler
from api.handlers.domain_actions import DomainActionHandlers
from api.handlers.ended_domains import EndedDomainsHandler
from api.handlers.preparation import PreparationHandlers
from api.handlers.status_page import StatusPageHandlers
from api.handlers.traffic import TrafficHandler
from api.operations.operation import Operation, Query
from api.operations.parameters import APPLICATION_ID, NEXT
from api.schemas.block import BlockBody
from api.schemas.certificate import CertificateBody
from api.schemas.preparation import PrepareBody
from api.schemas.status_link import StatusLinkBody
from api.schemas.traffic import PERIODS
from api.schemas.transfer import TransferBody
from api.services.ended_domains import MOST_LISTED
from common.accounts import Permission
from common.enrolment.ownership import REMEMBERED_DAYS

DIAGNOSIS: Final[tuple[Operation[DiagnosisHandler], ...]] = (
    Operation(
        "GET",
        "/domains/{domain}/diagnosis",
        DiagnosisHandler.get,
        "diagnoseDomain",
        "Domains",
        "Say what is wrong with a domain, and the one thing to do",
        Diagnosis,
        errors=(400,),
        paths={"domain": "A domain, enrolled or not."},
    ),
)

ENDED: Final[tuple[Operation[EndedDomainsHandler], ...]] = (
    Operation(
        "GET",
        "/domains/ended",
        EndedDomainsHandler.get,
        "getEndedDomains",
        "Domains",
        f"List domains that ended in the last {REMEMBERED_DAYS} days, with whether their DNS still leads here",
        ListOf[EndedDomain],
        queries=(
            NEXT,
            Query(
                "limit", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": MOST_LISTED}, "Of a part."
            ),
        ),
        errors=(400,),
    ),
)

STATUS_LINKS: Final[tuple[Operation[StatusPageHandlers], ...]] = (
    Operation(
        "POST",
        "/domains/{domain}/status-link",
        StatusPageHandlers.post,
        "makeStatusLink",
        "Domains",
        "Make a link to a page that shows a customer how the domain is; it ends the former link",
        StatusLink,
        status=201,
        body=StatusLinkBody,
        example={"expiresInDays": 30},
        errors=(400, 404),
        paths={"domain": "A domain that the application has enrolled or prepared."},
    ),
    Operation(
        "GET",
        "/domains/{domain}/status-link",
        StatusPageHandlers.get,
        "getStatusLink",
        "Domains",
        "Get the link to the page that shows a customer how the domain is",
        StatusLink,
        errors=(400, 404),
        permission=Permission.CHANGE,  # the link opens a page
        paths={"domain": "A domain that the application has enrolled or prepared."},
    ),
    Operation(
        "DELETE",
        "/domains/{domain}/status-link",
        StatusPageHandlers.delete,
        "revokeStatusLink",
        "Domains",
        "Revoke the link to the page that shows a customer how the domain is",
        Message,
        errors=(400, 404),
        paths={"domain": "A domain that the application has enrolled or prepared."},
    ),
)

TRAFFIC: Final[tuple[Operation[TrafficHandler], ...]] = (
    Operation(
        "GET",
        "/domains/{domain}/traffic",
        TrafficHandler.get,
        "getTraffic",
        "Domains",
        "Requests, bytes, errors and latency of a domain over time",
        Traffic,
        queries=(
            Query(
                "period",
                {"type": "string", "enum": list(PERIODS), "default": "day"},
                "The last 24 hours by 5 minutes, or the last 30 days by the hour.",
            ),
        ),
        errors=(400,),
        paths={"domain": "A domain of the application."},
    ),
)

_PREPARED = {"domain": "A domain of a customer, wherever it leads now."}

PREPARATIONS: Final[tuple[Operation[PreparationHandlers], ...]] = (
    Operation(
        "POST",
        "/domains/{domain}/prepare",
        PreparationHandlers.post,
        "prepareDomain",
        "Domains",
        "Prepare a domain: served with its certificate by every edge before its DNS leads here, for 30 days",
        DomainPreparation,
        body=PrepareBody,
        example={"product": "power", "applicationUrl": "https://app.acme.example/shop"},
        errors=(400, 409, 502),
        paths=_PREPARED,
    ),
    Operation(
        "GET",
        "/domains/{domain}/prepare",
        PreparationHandlers.get,
        "getPreparation",
        "Domains",
        "Show the records to set for a prepared domain, and how far it is",
        DomainPreparation,
        errors=(400, 404),
        paths=_PREPARED,
    ),
    Operation(
        "DELETE",
        "/domains/{domain}/prepare",
        PreparationHandlers.delete,
        "endPreparation",
        "Domains",
        "Prepare a domain no longer, before its DNS leads here",
        Message,
        errors=(400, 404, 409),
        paths=_PREPARED,
    ),
)

ACTIONS: Final[tuple[Operation[DomainActionHandlers], ...]] = (
    Operation(
        "POST",
        "/domains/{domain}/renew",
        DomainActionHandlers.renew,
        "renewCertificate",
        "Domains",
        "Renew a domain's certificate now; the one so far serves until the new one is live",
        Message,
        status=202,
        errors=(400, 409),
        paths={"domain": "A domain of the application."},
    ),
    Operation(
        "POST",
        "/domains/{domain}/recheck",
        DomainActionHandlers.recheck,
        "recheckDomain",
        "Domains",
        "Check an enrolled domain's DNS now",
        Message,
        status=202,
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
    ),
    Operation(
        "POST",
        "/domains/{domain}/transfer",
        DomainActionHandlers.transfer,
        "transferDomain",
        "Domains",
        "Give a domain to another application of the same organisation, whatever its DNS proves, as an owner",
        Message,
        body=TransferBody,
        example={"to": APPLICATION_ID, "applicationUrl": "https://app.acme.example/shop"},
        errors=(400, 404, 409),
        paths={"domain": "A domain of the application."},
        permission=Permission.OWN,
        by_key_alone=True,
    ),
    Operation(
        "POST",
        "/domains/{domain}/free",
        DomainActionHandlers.free,
        "freeDomain",
        "Domains",
        "Stop serving a name at once and forget its holder, as an operator",
        Message,
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
        permission=Permission.OWN,
        by_key_alone=True,
    ),
    Operation(
        "POST",
        "/domains/{domain}/block",
        DomainActionHandlers.block,
        "blockDomain",
        "Domains",
        "Answer every request of a name with a reason, and have no application enrol it anew, as an operator",
        Message,
        body=BlockBody,
        example={"reason": "Phishing was reported here."},
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
        permission=Permission.OWN,
        by_key_alone=True,
    ),
    Operation(
        "POST",
        "/domains/{domain}/unblock",
        DomainActionHandlers.unblock,
        "unblockDomain",
        "Domains",
        "Serve a blocked name again, as an operator",
        Message,
        errors=(400, 404, 409),
        paths={"domain": "A domain of the application."},
        permission=Permission.OWN,
        by_key_alone=True,
    ),
)

CERTIFICATES: Final[tuple[Operation[CertificateHandlers], ...]] = (
    Operation(
        "GET",
        "/domains/{domain}/certificate",
        CertificateHandlers.get,
        "getCertificate",
        "Domains",
        "Show the certificate that visitors get, whose it is, and an open request for one",
        DomainCertificate,
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
    ),
    Operation(
        "PUT",
        "/domains/{domain}/certificate",
        CertificateHandlers.put,
        "bringCertificate",
        "Domains",
        "Serve a domain with a certificate of your own, until its last day",
        Message,
        body=CertificateBody,
        example={"certificate": "-----BEGIN CERTIFICATE-----\n…", "privateKey": "-----BEGIN PRIVATE KEY-----\n…"},
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
    ),
    Operation(
        "DELETE",
        "/domains/{domain}/certificate",
        CertificateHandlers.delete,
        "removeOwnCertificate",
        "Domains",
        "Serve a domain with our certificate again, and forget an open request",
        Message,
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
    ),
    Operation(
        "POST",
        "/domains/{domain}/certificate/request",
        CertificateHandlers.request,
        "requestSigning",
        "Domains",
        "Make a key, which stays here, and a request that your authority signs; the open one where there is one",
        SigningRequest,
        errors=(400, 404),
        paths={"domain": "A domain of the application."},
    ),
)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (
    *DIAGNOSIS,
    *STATUS_LINKS,
    *ENDED,
    *TRAFFIC,
    *CERTIFICATES,
    *PREPARATIONS,
    *ACTIONS,
)
