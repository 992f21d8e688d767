"""Who may visit a domain, how often, and over which TLS, as bodies have it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from common.errors import FrontageError
from common.visitors import MOST_NETWORKS, parse_network

MOST_REQUESTS = 100_000
MOST_SECONDS = 3600


def _network(text: str) -> str:
    try:
        return str(parse_network(text))
    except FrontageError as error:
        raise ValueError(str(error)) from error


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)


Networks = Annotated[list[Annotated[str, AfterValidator(_network)]], Field(max_length=MOST_NETWORKS)]


class RateLimit(_Part):
    """How many requests each client may send: that many at once, and that many again in so many seconds."""

    requests: int = Field(ge=1, le=MOST_REQUESTS)
    seconds: int = Field(1, ge=1, le=MOST_SECONDS)


class VisitorRules(_Part):
    """Rules for visitors, in place of all of before; an empty object ends them."""

    allow: Networks = []
    """Addresses and networks that alone may visit; none: all."""
    deny: Networks = []
    """Addresses and networks that may not visit, whatever is allowed."""
    rate_limit: RateLimit | None = None
    minimum_tls: Literal["1.2", "1.3"] | None = None
    """The oldest version of TLS that is spoken; without one, 1.2."""

    def stored(self) -> dict[str, Any]:
        """Return what is kept, without rules that are empty."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


Visitors = Annotated[VisitorRules, AfterValidator(VisitorRules.stored)]
"""In a body; its value is what is kept."""
