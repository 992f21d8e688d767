"""An application's own settings and secrets: bodies and answers. What a value may be is decided by
`common.application_settings`, for the dashboard, the command line and the API alike."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.schemas.bodies import Strict
from common.application_secrets import SecretChange, ServiceAuthChange
from common.db.applications import Application, SendHost

MOST_ROOT_PATHS = 200


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
    error_page: str | None = None


class ApplicationRemoval(Strict):
    """`name`: the application's, so that no other is deleted by mistake."""

    name: str


class SecretRotation(Strict):
    action: Literal["rotate"] = "rotate"


class SignatureSwitch(Strict):
    action: SecretChange


class ServiceAuthSwitch(Strict):
    """`value`: of one's own, with `on` and `rotate`; without it, one is made."""

    action: ServiceAuthChange
    value: str | None = None


def rendered(application: Application, error_page: str | None) -> dict[str, Any]:
    """All that a partner sets, and no secret."""
    return {
        "applicationId": application.id,
        "name": application.name,
        "cnameTarget": application.cname_target,
        "secureCnameTarget": application.secure_cname_target,
        "applicationUrl": application.application_url,
        "webhookUrl": application.webhook_url,
        "rootPathAccess": list(application.root_path_access),
        "sendHost": application.send_host,
        "originServerName": application.origin_server_name,
        "originVerify": application.origin_verify,
        "maintenance": application.maintenance,
        "bufferUploadsBytes": application.buffer_uploads_bytes,
        "errorPage": error_page,
        "tier": application.tier,
        "connect": application.connect,
        "serviceAuth": service_auth_state(application),
        "signature": "off" if application.signature_key is None else "on",
        "createdAt": application.created_at,
    }


def service_auth_state(application: Application) -> str:
    if application.service_auth is None:
        return "off"
    return "on" if application.next_service_auth is None else "rotating"
