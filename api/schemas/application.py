"""Bodies about an application's own settings and secrets.

What a value may be is decided by `api.rules.application_settings`, for the dashboard, the command line and the API
alike.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.rules.application_settings import MOST_ROOT_PATHS
from api.rules.application_tokens import SecretChange, ServiceAuthChange
from api.rules.response_policy import MOST_FIELDS
from api.schemas.bodies import Strict
from api.schemas.response_policy import ResponsePolicyBody
from common.db.applications import ErrorStatus, MinimumTls, SendHost

Tier = Literal["basic", "premium", "enterprise"]


class ApplicationChange(Strict):
    """What is left out stays; an empty text takes a setting away, and 0 bytes stream uploads."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)

    name: str | None = None
    cname_target: str | None = None
    secure_cname_target: str | None = None
    application_url: str | None = None
    webhook_url: str | None = None
    root_path_access: list[str] | None = Field(None, max_length=MOST_ROOT_PATHS)
    send_host: SendHost | None = None
    origin_server_name: str | None = None
    origin_verify: bool | None = None
    maintenance: bool | None = None
    buffer_uploads_bytes: int | None = Field(None, ge=0)
    http2: bool | None = None
    minimum_tls: MinimumTls | None = None
    error_status: ErrorStatus | None = None
    error_page: str | None = None
    response_policy: ResponsePolicyBody | None = None
    metadata_fields: list[str] | None = Field(None, max_length=MOST_FIELDS)


class ApplicationCreation(Strict):
    """POST /applications.

    `organisationId`: the organisation that it belongs to. Left out, it is the only one that the user owns; an
    operator's application then belongs to none. `test`: for tests, which it stays.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)

    name: str
    cname_target: str
    secure_cname_target: str | None = None
    application_url: str | None = None
    webhook_url: str | None = None
    organisation_id: str | None = None
    error_status: ErrorStatus | None = None
    test: bool = False


class OperatorChange(Strict):
    """What is left out stays; an empty `organisationId` leaves the application to operators."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)

    tier: Tier | None = None
    connect: bool | None = None
    organisation_id: str | None = None


class ApplicationRemoval(Strict):
    """`name`: the application's, so that no other is deleted by mistake."""

    name: str


class SecretRotation(Strict):
    """PUT /application/webhook-secret."""

    action: Literal["rotate"] = "rotate"


class ClientSecretRotation(SecretRotation):
    """With `keep_links`, what tokens of the old secret made (links, flows, configurations) outlives that secret."""

    keep_links: bool = Field(False, alias="keepLinks")


class SignatureSwitch(Strict):
    """PUT /application/signature."""

    action: SecretChange


class ServiceAuthSwitch(Strict):
    """`value`: of one's own, with `on` and `rotate`; without it, one is made."""

    action: ServiceAuthChange
    value: str | None = None
