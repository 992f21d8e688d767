"""What ``POST /token`` is sent."""

from __future__ import annotations

from pydantic import Field

from api.schemas.bodies import Strict


class TokenBody(Strict):
    application_id: str = Field(alias="applicationId")
    secret: str
