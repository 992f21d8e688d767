"""What becomes of an enrolment: done, or refused with a code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from common.dns import Outcome
from common.enrolment.ownership import OwnershipVerdict
from common.errors import FrontageError


class EnrolmentCode(StrEnum):
    """Why a name is not enrolled. The values are codes that programs read."""

    ROOT = "root"  # Power, where the policy takes no root domain
    RESERVED = OwnershipVerdict.RESERVED.value
    BLOCKED = OwnershipVerdict.BLOCKED.value
    SUSPENDED = OwnershipVerdict.SUSPENDED.value
    HELD = OwnershipVerdict.HELD.value
    LEADS_TO_HOLDER = OwnershipVerdict.LEADS_TO_HOLDER.value
    HELD_UNKNOWN = OwnershipVerdict.UNKNOWN.value
    STEP_ONE = "step_one"  # the application's cname target does not lead to us
    NOT_ELIGIBLE = "not_eligible"  # the name does not lead to the application
    NOT_ASKED = "not_asked"  # the DNS gave no answer, so where the name leads is unknown
    UNPROVEN = OwnershipVerdict.UNPROVEN.value
    UNDELEGATED = OwnershipVerdict.UNDELEGATED.value
    ENROLLED = "enrolled"  # by the application itself
    ENROLLED_OTHERWISE = "already_enrolled"  # by the application itself, with settings that the policy keeps
    ORDERING = "ordering"  # a certificate is on its way
    TOO_OFTEN = "enrolled_too_often"
    NO_ORIGIN = "no_origin"
    ORIGIN_PATH = "origin_path"  # Secure forwards each request's path unchanged
    ORIGIN_REFUSED = "origin_refused"  # by the address policy
    ORIGIN_UNREACHABLE = "origin_unreachable"
    LOOP = "loop"  # of redirects


@dataclass(frozen=True, slots=True)
class Enrolled:
    """An enrolment that was done.

    `change` is what it did to the application's enrolment of the name.
    """

    change: Literal["added", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class EnrolmentRefused:
    """Why the name is not enrolled.

    `detail` is what the refusing part said, for people: of the origin or its address. `outcome` is how the DNS
    question ended that leaves eligibility open. `is_outranked`: a CNAME to the application's target proves nothing,
    because another application set its own target on the way before. After `retry_after_seconds` the same request may
    succeed.
    """

    code: EnrolmentCode
    detail: str = ""
    outcome: Outcome | None = None
    is_outranked: bool = False
    retry_after_seconds: float | None = None


EnrolmentOutcome: TypeAlias = Enrolled | EnrolmentRefused


class RefusedInside(FrontageError):
    """Carries a refusal out of the transaction that it rolls back."""

    def __init__(self, refused: EnrolmentRefused) -> None:
        super().__init__(refused.code.value)
        self.refused = refused
