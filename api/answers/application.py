"""Applications: the settings of one, the list of them, and secrets where they are made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypedDict

from api.answers.webhooks import shown_url
from api.rules.response_policy import Compression, ReferrerPolicy
from common.db import applications
from common.db.application_removal import Extent

ServiceAuth = Literal["off", "on", "rotating"]


class Deleting(TypedDict):
    """What is left of an application. Counts stop at a million."""

    since: datetime
    domains: int
    monitored: int


class Suspended(TypedDict):
    """What the operator has edges answer to every request of every domain of the application."""

    status: Literal[403, 451]
    reason: str
    since: datetime


class Hsts(TypedDict):
    """Strict-Transport-Security, over HTTPS alone."""

    maxAge: int
    """Seconds."""
    includeSubDomains: bool
    preload: bool


class ResponsePolicy(TypedDict):
    """Fields that responses carry where the origin sends none of that name."""

    hsts: Hsts | None
    nosniff: bool
    """X-Content-Type-Options: nosniff."""
    referrerPolicy: ReferrerPolicy | None
    compression: Compression
    """Of what the origin sends uncompressed; `always`: also where it sets a cookie and may reflect the request."""
    fields: Mapping[str, str]
    """Others, by name."""


class Application(TypedDict):
    """Secrets are in no answer but the one that made them."""

    applicationId: str
    name: str
    cnameTarget: str
    secureCnameTarget: str | None
    applicationUrl: str | None
    webhookUrl: str | None
    """Where events are sent; null: they are only listed. Users and keys that may only look get `…` for its query."""
    rootPathAccess: list[str]
    sendHost: Literal["origin", "customer"]
    originServerName: str | None
    originVerify: bool
    maintenance: bool
    bufferUploadsBytes: int | None
    http2: bool
    minimumTls: applications.MinimumTls
    """Of domains that state none themselves."""
    errorStatus: applications.ErrorStatus
    """Of refused changes of Power and Secure: always 502, or as HTTP has them."""
    responsePolicy: ResponsePolicy | None
    """Fields that responses carry where the origin sends none of that name."""
    metadataFields: list[str]
    """Keys of domains' `metadata` that origins get, each as `X-Service-Metadata-` and the key."""
    errorPage: str | None
    tier: str
    connect: bool
    serviceAuth: ServiceAuth
    signature: Literal["off", "on"]
    organisationId: str | None
    test: bool
    """Made for tests: no public CA issues for its domains."""
    deleting: Deleting | None
    """Null unless it is being deleted."""
    suspended: Suspended | None
    """Null unless the operator has suspended it."""
    createdAt: datetime


class ListedApplication(TypedDict):
    """An item of the list of applications."""

    applicationId: str
    name: str
    cnameTarget: str
    organisationId: str | None
    test: bool
    """Made for tests."""
    deletingSince: datetime | None
    suspendedSince: datetime | None
    createdAt: datetime


class ClientSecret(TypedDict):
    """A new client secret."""

    message: str
    previousUntil: datetime
    """The secret so far works until then."""
    clientSecret: str


class WebhookSecret(TypedDict):
    """A new webhook secret."""

    message: str
    previousUntil: datetime
    """The secret so far signs beside the new one until then."""
    webhookSecret: str


class SignatureState(TypedDict):
    """Whether forwarded requests are signed."""

    message: str
    signature: Literal["off", "on"]
    key: str | None
    """Where one was made."""


class ServiceAuthState(TypedDict):
    """Whether edges send X-Service-Auth."""

    message: str
    serviceAuth: ServiceAuth
    """While `rotating`, edges send the value so far."""
    value: str | None
    """Where one was made."""


def application_answer(
    application: applications.Application, error_page: str | None, left: Extent | None = None, *, shows_query: bool
) -> Application:
    """Render all that a partner sets, and no secret. `left`: what remains of one that is being deleted.

    `shows_query`: as `api.answers.webhooks.shown_url`.
    """
    deleting: Deleting | None = None
    if left is not None and application.deleting_at is not None:
        deleting = {"since": application.deleting_at, "domains": left.domains, "monitored": left.monitored_domains}
    return {
        "applicationId": application.id,
        "name": application.name,
        "cnameTarget": application.cname_target,
        "secureCnameTarget": application.secure_cname_target,
        "applicationUrl": application.application_url,
        "webhookUrl": shown_url(application.webhook_url, shows_query=shows_query),
        "rootPathAccess": list(application.root_path_access),
        "sendHost": application.send_host,
        "originServerName": application.origin_server_name,
        "originVerify": application.origin_verify,
        "maintenance": application.maintenance,
        "bufferUploadsBytes": application.buffer_uploads_bytes,
        "http2": application.http2,
        "minimumTls": application.minimum_tls,
        "errorStatus": application.error_status,
        "responsePolicy": response_policy(application.response_policy),
        "metadataFields": list(application.metadata_fields),
        "errorPage": error_page,
        "tier": application.tier,
        "connect": application.connect,
        "serviceAuth": service_auth_of(application),
        "signature": signature_of(application),
        "organisationId": application.organisation_id,
        "test": application.is_test,
        "deleting": deleting,
        "suspended": _suspended(application),
        "createdAt": application.created_at,
    }


def response_policy(stored: Mapping[str, Any] | None) -> ResponsePolicy | None:
    """Render what is stored of the fields that responses carry."""
    if stored is None:
        return None
    seconds = stored.get("hsts_seconds")
    hsts: Hsts | None = None
    if seconds is not None:
        hsts = {
            "maxAge": seconds,
            "includeSubDomains": stored.get("hsts_subdomains", False),
            "preload": stored.get("hsts_preload", False),
        }
    return {
        "hsts": hsts,
        "nosniff": stored.get("nosniff", False),
        "referrerPolicy": stored.get("referrer_policy"),
        "compression": stored.get("compression", "off"),
        "fields": stored.get("fields", {}),
    }


def listed_application(application: applications.Application) -> ListedApplication:
    """Render an item of the list of applications."""
    return {
        "applicationId": application.id,
        "name": application.name,
        "cnameTarget": application.cname_target,
        "organisationId": application.organisation_id,
        "test": application.is_test,
        "deletingSince": application.deleting_at,
        "suspendedSince": application.suspension and application.suspension.since,
        "createdAt": application.created_at,
    }


def _suspended(application: applications.Application) -> Suspended | None:
    found = application.suspension
    return None if found is None else {"status": found.status, "reason": found.reason, "since": found.since}


def signature_of(application: applications.Application) -> Literal["off", "on"]:
    """Return whether forwarded requests are signed."""
    return "off" if application.signature_key is None else "on"


def service_auth_of(application: applications.Application) -> ServiceAuth:
    """Return whether edges send X-Service-Auth, and whether its value is being rotated."""
    if application.service_auth is None:
        return "off"
    return "on" if application.next_service_auth is None else "rotating"
