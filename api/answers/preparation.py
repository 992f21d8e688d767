"""A domain that is being prepared, as the API shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from api.answers.domain_details import CertificateInService
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
    expiresAt: datetime
    """A repeated POST moves it on."""
    preparedAt: datetime | None
    activeAt: datetime | None
    hint: str
    """What to do next, with the command that shows the domain as it will be."""


def preparation_answer(prepared: PreparedDomain) -> DomainPreparation:
    """Render a preparation."""
    found, certificate = prepared.preparation, prepared.certificate
    return {
        "domain": found.domain,
        "product": found.product,
        "state": found.state,
        "reason": found.reason,
        "records": [
            {"type": each.type, "host": each.host, "value": each.value, "state": each.state}
            for each in prepared.records
        ],
        "certificate": None
        if certificate is None
        else {"issuer": certificate.issuer, "expiresAt": certificate.not_after},
        "expiresAt": found.expires_at,
        "preparedAt": found.prepared_at,
        "activeAt": found.active_at,
        "hint": prepared.next_step,
    }
