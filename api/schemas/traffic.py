"""Traffic of a domain: the periods that can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas.queries import parse_optional_text
from common.db.traffic import Minutes


class Period(NamedTuple):
    """A period of traffic, and the length of its intervals."""

    name: Literal["day", "month"]
    minutes: Minutes
    length: timedelta


PERIODS: Final[Mapping[str, Period]] = MappingProxyType(
    {"day": Period("day", 5, timedelta(days=1)), "month": Period("month", 60, timedelta(days=30))}
)
DEFAULT_PERIOD: Final = PERIODS["day"]


def parse_period(query: MultiMapping[str]) -> Period:
    """Read the period that is asked for. Raises: `Refused`."""
    text = parse_optional_text(query, "period")
    if text is None:
        return DEFAULT_PERIOD
    if text not in PERIODS:
        raise Refused(invalid_parameter("period"), hint=f"expected one of {', '.join(PERIODS)}")
    return PERIODS[text]
