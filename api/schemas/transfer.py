"""The body of ``POST /domains/:domain/transfer``."""

from __future__ import annotations

from pydantic import Field

from api.schemas.bodies import Strict, Url


class TransferBody(Strict):
    """`to`: an application of the same organisation. `applicationUrl`: its origin for the domain, if not its own."""

    to: str
    application_url: Url | None = Field(None, alias="applicationUrl")
