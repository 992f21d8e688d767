"""The queries of the list of flows and of their funnel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas.queries import (
    DEFAULT_SIZE,
    LARGEST_SIZE,
    parse_flag,
    parse_integer,
    parse_optional_text,
)
from common.db.connect_flow_list import STEPS, FlowFilter, Step
from common.db.connect_flows import KEPT_DAYS
from common.errors import InvalidName
from common.flow_states import State
from common.names import parse_domain

_FLOW_ID = re.compile(r"flw_[0-9a-f]{32}")
_LONGEST_ID = 255
DEFAULT_DAYS = 7

_T = TypeVar("_T", bound=str)


@dataclass(frozen=True, slots=True)
class FlowsQuery:
    """Which flows are listed, behind which one, and how many."""

    which: FlowFilter
    after: str | None
    limit: int


def parse_flows_query(query: MultiMapping[str]) -> FlowsQuery:
    """Read the query of the list of flows. Raises: `Refused` that names the parameter."""
    after = parse_optional_text(query, "after")
    if after is not None and not _FLOW_ID.fullmatch(after):
        raise Refused(invalid_parameter("after"), hint="the `next` of the part before")
    return FlowsQuery(
        flow_filter(
            state=_one_of(query, "state", tuple(State)),
            step=_one_of(query, "step", STEPS),
            domain=parse_optional_text(query, "domain"),
            user_id=_read_id(query, "userId"),
            job_id=_read_id(query, "jobId"),
            is_open=parse_flag(query, "open") if "open" in query else None,
        ),
        after,
        parse_integer(query, "limit", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE),
    )


def parse_funnel_query(query: MultiMapping[str]) -> int:
    """Return how many days back flows are counted. Raises: `Refused`."""
    return parse_integer(query, "days", default=DEFAULT_DAYS, least=1, most=KEPT_DAYS)


def flow_filter(
    *,
    state: State | None = None,
    step: Step | None = None,
    domain: str | None = None,
    user_id: str | None = None,
    job_id: str | None = None,
    is_open: bool | None = None,
) -> FlowFilter:
    """Return the filter for a domain as text: an apex stands for all beneath it. Raises: `Refused`."""
    if domain is None:
        return FlowFilter(state, step, None, None, user_id, job_id, is_open)
    try:
        name = parse_domain(domain)
    except InvalidName as error:
        raise Refused(invalid_parameter("domain"), hint=str(error)) from error
    return FlowFilter(state, step, name.registrable, name.subdomain, user_id, job_id, is_open)


def _read_id(query: MultiMapping[str], name: str) -> str | None:
    text = parse_optional_text(query, name)
    if text is not None and (not text or len(text) > _LONGEST_ID or "\0" in text):
        raise Refused(invalid_parameter(name), hint=f"1 to {_LONGEST_ID} characters, as the flow has it")
    return text


def _one_of(query: MultiMapping[str], name: str, values: tuple[_T, ...]) -> _T | None:
    text = parse_optional_text(query, name)
    found = next((each for each in values if each == text), None)
    if text is not None and found is None:
        raise Refused(invalid_parameter(name), hint=f"one of {', '.join(values)}")
    return found
