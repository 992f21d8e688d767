"""Reads what a person brings back from a provider's consent page.

It is the Apply Response of draft-ietf-dconn-domainconnect. The browser sends all of it, so it is only a reason to look
at the DNS. A description is the provider's text for developers; it is kept short, without control characters, and shown
as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from common.flows.handover import ReturnOutcome

_ERRORS: Final = frozenset(  # RFC 6749 §4.1.2.1
    {
        "invalid_request",
        "unauthorized_client",
        "access_denied",
        "unsupported_response_type",
        "invalid_scope",
        "server_error",
        "temporarily_unavailable",
    }
)
_MOST_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Returned:
    """The outcome of a consent page; `error` is one of the draft's codes, or ``other``."""

    outcome: ReturnOutcome
    error: str | None = None
    description: str | None = None


def read_return(query: Mapping[str, str]) -> Returned:
    """Read the outcome from the query of the address that the browser returned to."""
    error = query.get("error")
    if error is None:
        return Returned("done")
    known = error if error in _ERRORS else "other"
    text = "".join(each if each.isprintable() else " " for each in query.get("error_description", ""))
    return Returned("refused" if known == "access_denied" else "error", known, text.strip()[:_MOST_CHARACTERS] or None)
