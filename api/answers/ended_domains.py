"""Domains that ended."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.services import ended_domains


class EndedDomain(TypedDict):
    """A domain that the application no longer serves."""

    domain: str
    ended_at: datetime
    """When the application gave it up."""
    leads_here: bool | None
    """Whether its DNS still leads to this service, asked now; null where it could not be asked."""


def ended_domain(of: ended_domains.EndedDomain) -> EndedDomain:
    """Render a domain that ended."""
    return {"domain": of.domain, "ended_at": of.ended_at, "leads_here": of.leads_here}
