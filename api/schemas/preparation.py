"""The body of ``POST /domains/:domain/prepare``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.schemas.bodies import Metadata, Strict, Url
from api.schemas.power import RootPaths
from api.schemas.response_policy import DomainResponsePolicy
from api.schemas.secure import RedirectTarget
from api.schemas.visitors import Visitors
from common.domain_settings import DomainSettings
from common.enrolment.request import EnrolmentRequest
from common.names import DomainName


class PrepareBody(Strict):
    """How the domain is to be served: what POST /power or POST /ssl would be sent.

    With `awaitDns` nothing of it is served before its DNS leads here: it is added by itself then.
    """

    product: Literal["power", "secure"]
    application_url: Url | None = Field(None, alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")
    redirect_to: RedirectTarget | None = Field(None, alias="redirectTo")
    metadata: Metadata | None = None
    visitors: Visitors | None = None
    response_policy: DomainResponsePolicy | None = Field(None, alias="responsePolicy")
    await_dns: bool = Field(False, alias="awaitDns")

    def as_request(self, name: DomainName) -> EnrolmentRequest:
        """Return the enrolment that the body asks for."""
        return EnrolmentRequest(self.product, name, DomainSettings.of(dict(self)))
