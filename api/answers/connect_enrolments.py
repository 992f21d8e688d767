"""What a flow enrols its names in, as clients see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from api.schemas.dns_record import DnsRecord
from common.db.domains import CertificateState
from common.flows.enrolments import Enrolment, EnrolmentStatus, MonitorEnrolment, ProductEnrolment
from common.flows.requested import Product
from common.records import Record


class FlowProduct(TypedDict):
    """A name and the product that the flow enrols it in."""

    product: Product
    """Power or Secure."""
    name: str
    """The whole name."""
    status: EnrolmentStatus
    """`failed` keeps the other names going; check tries it again."""
    applicationUrl: str | None
    """Null: the application's own."""
    redirectTo: str | None
    """Where the name leads instead, of `secure` only."""
    powerRootPathAccess: Sequence[str] | None
    """Null: the application's own."""
    url: NotRequired[str]
    """Where a browser opens the name, once it is enrolled."""
    code: NotRequired[str]
    """Why it failed; left out unless it did."""
    hint: NotRequired[str]
    """The same in words."""
    certificate: NotRequired[CertificateState]
    """How far its certificate is, where a flow is read by itself."""


class FlowMonitoring(TypedDict):
    """A name whose records are watched from now on."""

    product: Literal["monitor"]
    """Monitor."""
    name: str
    """The whole name."""
    subdomain: str | None
    """Null at the apex."""
    status: EnrolmentStatus
    """`failed` keeps the other names going; check tries it again."""
    records: list[DnsRecord]
    """What is watched."""
    unchanged: NotRequired[bool]
    """Sent as true where they were watched already; else left out."""
    code: NotRequired[str]
    """Why it failed; left out unless it did."""
    hint: NotRequired[str]
    """The same in words."""


FlowEnrolmentAnswer: TypeAlias = FlowProduct | FlowMonitoring


def flow_enrolment(enrolment: Enrolment, certificates: Mapping[str, CertificateState]) -> FlowEnrolmentAnswer:
    """Render an enrolment of a flow. `certificates`: those that are known, by name."""
    if isinstance(enrolment, MonitorEnrolment):
        return _monitoring(enrolment)
    return _product(enrolment, certificates.get(enrolment.name))


def _product(enrolment: ProductEnrolment, certificate: CertificateState | None) -> FlowProduct:
    settings = enrolment.settings
    answer: FlowProduct = {
        "product": enrolment.product,
        "name": enrolment.name,
        "status": enrolment.status,
        "applicationUrl": settings.application_url,
        "redirectTo": settings.redirect_to,
        "powerRootPathAccess": settings.root_path_access,
    }
    if enrolment.url is not None:
        answer["url"] = enrolment.url
    if enrolment.code is not None:
        answer["code"] = enrolment.code
    if enrolment.hint is not None:
        answer["hint"] = enrolment.hint
    if certificate is not None:
        answer["certificate"] = certificate
    return answer


def _monitoring(enrolment: MonitorEnrolment) -> FlowMonitoring:
    answer: FlowMonitoring = {
        "product": "monitor",
        "name": enrolment.name,
        "subdomain": enrolment.subdomain,
        "status": enrolment.status,
        "records": list(map(_record, enrolment.records)),
    }
    if enrolment.is_unchanged:
        answer["unchanged"] = True
    if enrolment.code is not None:
        answer["code"] = enrolment.code
    if enrolment.hint is not None:
        answer["hint"] = enrolment.hint
    return answer


def _record(record: Record) -> DnsRecord:
    answer: DnsRecord = {"type": record.type, "host": record.host, "value": record.value, "ttl": record.ttl}
    if record.priority is not None:
        answer["priority"] = record.priority
    return answer
