"""What can go wrong on a way, in words for the person who goes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from common.errors import FrontageError
from common.flows.handover import FlowProblem

HINTS: Mapping[str, str] = MappingProxyType(
    {
        "wrong_token": "Make a new token or key, copy all of it, and try again.",
        "not_allowed": "Give the token or key the right to change the DNS records of this domain, then try again.",
        "rate_limited": "Wait a minute, then try again.",
        "provider_unreachable": "Try again in a moment, or set the records by hand.",
        "provider_refused": "Try again, or set the records by hand.",
        "zone_not_found": "Use a token or key of the account in which the domain's DNS is managed.",
        "not_written": "Look at the records at the provider, then try again, or set them by hand.",
        "interrupted": "Look at what is written, then go on, or undo it.",
        "zone_changed": "Look at the new plan, and apply that.",
        "credentials_missing": "Correct the fields, fill in every one that is required, and try again.",
        "address_refused": "This service may not connect to that address: give another, or set the records by hand.",
    }
)


class WayFailed(FrontageError):
    """Writing ended before its end. The message names no secret, and nothing that a provider sent.

    `fields`: the names of the credentials that are wrong, where the provider's answer or the value itself tells.
    """

    def __init__(self, code: str, words: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.code = code
        self.fields = fields

    def as_problem(self) -> FlowProblem:
        """Return the problem as the flow stores and shows it."""
        return FlowProblem(self.code, str(self), HINTS[self.code], self.fields)
