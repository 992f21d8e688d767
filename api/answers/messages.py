"""The answers that have a message: accepted changes and errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NotRequired, cast

from typing_extensions import TypedDict

from api.answers.connect import Flow
from api.answers.connect_plan import FlowPlan, PlannedSet
from api.errors import Refused
from api.notices import Notice, combined


class Problem(TypedDict):
    """Every error."""

    message: str
    code: str
    """For programs; the handbook lists all."""
    hint: NotRequired[str | None]
    """What to do next, in a sentence."""
    request_id: str
    """Names the request in the logs."""
    flow: NotRequired[Flow | None]
    """With `zone_changed`: the flow with its new plan."""
    plan: NotRequired[FlowPlan | None]
    """With `written_changed`: what undo would do now."""
    changed: NotRequired[list[PlannedSet] | None]
    """With `written_changed`: what is no longer as the flow wrote it."""


class Noted(TypedDict):
    """What is there when visitors do not meet an accepted change yet."""

    code: NotRequired[str | None]
    hint: NotRequired[str | None]


class Message(Noted):
    """An accepted change. `code` and `hint` are there when visitors do not meet it yet."""

    message: str


def problem_of(error: Refused, request_id: str) -> Problem:
    """Render a refusal, with its details, and with its hint where it has one."""
    message = {"message": error.refusal.message, "request_id": request_id}
    hint = {"hint": error.hint} if error.hint else {}
    return cast("Problem", {**message, **error.details, "code": error.code, **hint})


def message_of(text: str, notices: Iterable[Notice] = ()) -> Message:
    """Render the answer to an accepted change, with its notices."""
    return {"message": text, **notices_of(notices)}


def notices_of(notices: Iterable[Notice]) -> Noted:
    """Render the notices of an accepted change; nothing where there are none."""
    notice = combined(notices)
    return {} if notice is None else {"code": notice.code, "hint": notice.hint}
