"""Secure's bodies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from api.schemas.bodies import Metadata, ProductBody, Url
from api.schemas.response_policy import DomainResponsePolicy
from api.schemas.visitors import Visitors
from common.errors import FrontageError
from common.urls import parse_redirect_target


def _redirect_target(text: str) -> str:
    try:
        return str(parse_redirect_target(text))
    except FrontageError as error:
        raise ValueError(str(error)) from error


def _redirect_change(text: str) -> str:
    return _redirect_target(text) if text else ""


RedirectTarget = Annotated[str, AfterValidator(_redirect_target)]
RedirectChange = Annotated[str, AfterValidator(_redirect_change)]

REASONS = {"unspecified": 0, "keyCompromise": 1, "affiliationChanged": 3, "superseded": 4, "cessationOfOperation": 5}
"""Why a certificate is revoked (RFC 5280 §5.3.1), as far as its subscriber may say (RFC 8555 §7.6)."""

Reason = Literal["unspecified", "keyCompromise", "affiliationChanged", "superseded", "cessationOfOperation"]


class SecureBody(ProductBody):
    """`redirect_to` is in canonical form, a URL."""

    application_url: Url | None = Field(None, alias="applicationUrl")
    redirect_to: RedirectTarget | None = Field(None, alias="redirectTo")
    metadata: Metadata | None = None
    visitors: Visitors | None = None
    response_policy: DomainResponsePolicy | None = Field(None, alias="responsePolicy")


class SecureChange(ProductBody):
    """What is left out stays. `redirect_to`: the empty text ends the redirect."""

    application_url: Url | None = Field(None, alias="applicationUrl")
    redirect_to: RedirectChange | None = Field(None, alias="redirectTo")
    metadata: Metadata | None = None
    visitors: Visitors | None = None
    response_policy: DomainResponsePolicy | None = Field(None, alias="responsePolicy")


class SecureRemoval(ProductBody):
    """`reason`: the certificate is to be revoked too."""

    reason: Reason | None = None
