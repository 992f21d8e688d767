"""A domain that is being prepared, as the API shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from api.answers.domain_details import CertificateInService
from api.notices import Notice
from api.services.preparations import PreparedDomain, RecordState
from common.db.domains import Product
from common.db.preparations import State


class RecordToSet(TypedDict):
    """A record for the domain's owner to set."""

    type: Literal["CNAME", "A", "AAAA"]
    host: str
    value: str
    state: RecordState
    """`later`: once the domain is prepared, and not before."""


class DomainPreparation(TypedDict):
    """A domain that is to be served before its DNS leads here."""

    domain: str
    product: Product
    state: State
    """`waiting` for the delegation, `issuing` the certificate, `prepared` once every edge serves it, and `active` once
    the DNS leads here."""
    reason: str | None
    """Why it waits although the delegation is seen: a code, as of a refused enrolment."""
    records: list[RecordToSet]
    certificate: CertificateInService | None
    metadata: Mapping[str, str]
    """The application's notes; empty where it keeps none."""
    expiresAt: datetime
    """A repeated POST moves it on."""
    preparedAt: datetime | None
    """When every edge served it with its certificate; null before."""
    activeAt: datetime | None
    """When its DNS was seen to lead here; null before."""
    hint: str
    """What to do next, with the command that shows the domain as it will be."""


def records_to_set(prepared: PreparedDomain) -> list[RecordToSet]:
    """Render the records of a prepared domain, that of its challenge first."""
    return [
        {"type": each.type, "host": each.host, "value": each.value, "state": each.state} for each in prepared.records
    ]


def preparation_answer(prepared: PreparedDomain, notices: Iterable[Notice] = ()) -> DomainPreparation:
    """Render a preparation; a notice, such as that no monitor runs, comes before the next step."""
    found, certificate = prepared.preparation, prepared.certificate
    return {
        "domain": found.domain,
        "product": found.product,
        "state": found.state,
        "reason": found.reason,
        "records": records_to_set(prepared),
        "certificate": None
        if certificate is None
        else {"issuer": certificate.issuer, "expiresAt": certificate.not_after},
        "metadata": {**(found.settings.metadata or {})},
        "expiresAt": found.expires_at,
        "preparedAt": found.prepared_at,
        "activeAt": found.active_at,
        "hint": next((notice.hint for notice in notices), prepared.next_step),
    }
