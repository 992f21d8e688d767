"""What ``POST /token`` is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from api.rules.application_tokens import TOKEN_LIFETIME
from api.schemas.bodies import Strict
from api.schemas.connect import ConfigurationId
from api.schemas.monitor_bodies import Apex

_LONGEST_SECONDS = int(TOKEN_LIFETIME.total_seconds())


class TokenBody(Strict):
    """POST /token. `expires_in` is in seconds.

    With `scope` ``connect``, the token is for a browser: it opens the connect modal's endpoints, for one `domain`
    and with one registered configuration, where they are given; `user_id` names the partner's customer.
    """

    application_id: str = Field(alias="applicationId")
    secret: str
    scope: Literal["connect"] | None = None
    domain: Apex | None = None
    configuration_id: ConfigurationId | None = Field(None, alias="configurationId")
    user_id: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(None, alias="userId")
    expires_in: Annotated[int, Field(ge=1, le=_LONGEST_SECONDS)] | None = Field(None, alias="expiresIn")

    @field_validator("domain", "configuration_id", "user_id", "expires_in")
    @classmethod
    def _of_a_scope(cls, value: object, info: ValidationInfo) -> object:
        """Refuse bounds of a full token, which has none: its holder must not believe in them."""
        if value is not None and info.data.get("scope") is None:
            raise ValueError('it belongs to a token with "scope": "connect"')
        return value

    @property
    def claims(self) -> dict[str, str]:
        """Return the claims of the token."""
        given = {
            "scope": self.scope,
            "domain": self.domain,
            "configurationId": self.configuration_id,
            "userId": self.user_id,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def lifetime(self) -> timedelta:
        """Return how long the token lives."""
        return TOKEN_LIFETIME if self.expires_in is None else timedelta(seconds=self.expires_in)
