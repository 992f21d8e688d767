"""What can go wrong on a way, in words for the person who goes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from common.errors import FrontageError
from common.flows.handover import FlowProblem

HINTS: Mapping[str, str] = MappingProxyType(
    {
        "wrong_token": "Make a new one, copy it whole, and try again.",
        "not_allowed": "Give it the right to change DNS records of this domain.",
        "rate_limited": "Wait a minute, then try again.",
        "provider_unreachable": "Try again in a moment, or set the records by hand.",
        "provider_refused": "Try again, or set the records by hand.",
        "zone_not_found": "Is this the account that the domain's DNS is managed in?",
        "not_written": "Look at the records at the provider; try again, or set them by hand.",
        "interrupted": "Look at what is written, then go on or take it back.",
        "zone_changed": "Look at the new plan.",
        "credentials_missing": "Fill in every field that is required.",
        "address_refused": "This server's address may not be dialled from here.",
    }
)


class WayFailed(FrontageError):
    """Writing ended before its end. The message names no credential, and nothing that a provider sent."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code

    def as_problem(self) -> FlowProblem:
        return FlowProblem(self.code, str(self), HINTS[self.code])
