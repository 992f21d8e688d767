"""What the items of both products' sorted and searched lists show beside those of the plain ones."""

from __future__ import annotations

import hashlib
from typing import Any

from common.db.domain_pages import ListedDomain


def details(domain: ListedDomain) -> dict[str, Any]:
    """The id, times and certificate as JSON."""
    certificate = None
    if domain.issuer is not None and domain.not_after is not None:
        certificate = {"issuer": domain.issuer, "expiresAt": domain.not_after}
    return {
        "id": _id(domain),
        "createdAt": domain.created_at,
        "updatedAt": domain.updated_at,
        "certificate": certificate,
    }


def _id(domain: ListedDomain) -> str:
    """One for each enrolment: a name that is removed and added again gets another."""
    identity = f"{domain.product} {domain.domain} {domain.created_at.timestamp():.6f}"
    return f"dom_{hashlib.sha256(identity.encode()).hexdigest()[:24]}"
