"""Queries of the lists of events and deliveries, and the body of a replay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, cast, get_args

from multidict import MultiMapping
from pydantic import AfterValidator, Field

from api.errors import Refused, invalid_parameter
from api.schemas.bodies import Strict
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE, cursor_name, parse_integer, parse_optional_text
from common.db.deliveries import Status, UndeliveredStatus
from common.db.events import EventType
from common.errors import InvalidName
from common.names import parse_domain

_EVENT_ID = re.compile(r"evt_[0-9a-f]{34}")


@dataclass(frozen=True, slots=True)
class EventsQuery:
    """`domain` is a registrable name."""

    before: str | None
    limit: int
    type: str | None
    domain: str | None


@dataclass(frozen=True, slots=True)
class DeliveriesQuery:
    """Which deliveries are listed; `event` is the id of their event."""

    before: str | None
    limit: int
    status: Status | None
    event: str | None


def _moment(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
        at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("expected a time such as 2026-03-01T12:00:00Z") from None
    if at.tzinfo is None:
        raise ValueError("expected a time with its offset, such as 2026-03-01T12:00:00Z")
    return text


Moment = Annotated[str, AfterValidator(_moment), Field(json_schema_extra={"format": "date-time"})]


class ReplayBody(Strict):
    """From the one moment on, and before the other."""

    from_: Moment = Field(alias="from")
    to: Moment | None = None
    status: UndeliveredStatus = "failed"

    @property
    def since(self) -> datetime:
        """Return the start of the range."""
        return datetime.fromisoformat(self.from_).astimezone(UTC)

    @property
    def until(self) -> datetime | None:
        """Return the end of the range, if it has one."""
        return None if self.to is None else datetime.fromisoformat(self.to).astimezone(UTC)


def parse_events_query(query: MultiMapping[str]) -> EventsQuery:
    """Read the query of a list of events. Raises: `Refused`."""
    return EventsQuery(
        before=_event_id(query, cursor_name(query)),
        limit=_limit(query),
        type=_one_of(query, "type", get_args(EventType)),
        domain=_domain(query),
    )


def parse_deliveries_query(query: MultiMapping[str]) -> DeliveriesQuery:
    """Read the query of a list of deliveries. Raises: `Refused`."""
    return DeliveriesQuery(
        before=_event_id(query, cursor_name(query)),
        limit=_limit(query),
        status=cast("Status | None", _one_of(query, "status", get_args(Status))),
        event=_event_id(query, "event"),
    )


def is_event_id(text: str) -> bool:
    """Return whether a text is the id of an event."""
    return _EVENT_ID.fullmatch(text) is not None


def _limit(query: MultiMapping[str]) -> int:
    return parse_integer(query, "limit", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)


def _event_id(query: MultiMapping[str], name: str) -> str | None:
    text = parse_optional_text(query, name)
    if text is not None and not is_event_id(text):
        raise Refused(invalid_parameter(name), hint="expected the id of an event")
    return text


def _one_of(query: MultiMapping[str], name: str, values: Sequence[str]) -> str | None:
    text = parse_optional_text(query, name)
    if text is not None and text not in values:
        raise Refused(invalid_parameter(name), hint=f"expected one of {', '.join(values)}")
    return text


def _domain(query: MultiMapping[str]) -> str | None:
    text = parse_optional_text(query, "domain")
    if text is None:
        return None
    try:
        return parse_domain(text).registrable
    except InvalidName as error:
        raise Refused(invalid_parameter("domain"), hint=str(error)) from error
