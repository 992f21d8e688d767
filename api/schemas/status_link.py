"""The body of ``POST /domains/:domain/status-link``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.schemas.bodies import Strict


class StatusLinkBody(Strict):
    """How long the link is to work."""

    expires_in_days: Annotated[int, Field(ge=1, le=365)] | None = Field(None, alias="expiresInDays")
