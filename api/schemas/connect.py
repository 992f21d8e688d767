"""Flows of the connect modal: bodies, and a flow as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.bodies import Strict
from common.connect import flow_events
from common.db.connect_configurations import RegisteredConfiguration
from common.db.connect_flows import Flow
from common.db.domains import CertificateState
from common.db.shares import Share
from common.flow_states import State

Way = Literal["domain_connect", "provider_api", "dynamic_update", "manual"]
MOST_CREDENTIALS = 12
Text = Annotated[str, Field(min_length=1, max_length=1024)]
ConfigurationId = Annotated[str, Field(pattern=r"^cfg_[0-9a-f]{32}$")]
Secret = Annotated[str, Field(min_length=1, max_length=8192)]

Credentials = Annotated[dict[Text, Secret], Field(max_length=MOST_CREDENTIALS)]


class ConnectBody(Strict):
    """POST /connect/flows: the keys of the configuration, and beside them the domain if it is known already.
    `configuration_id`: the registered configuration that the others stand on. `share`: the id of the sharing link that
    was opened, in its place."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    domain: Text | None = None
    subdomain: Annotated[str, Field(max_length=1024)] | None = None
    share: Text | None = None
    configuration_id: ConfigurationId | None = Field(None, alias="configurationId")

    @property
    def config(self) -> Mapping[str, Any]:
        return self.model_extra or {}


class DomainBody(Strict):
    """POST /connect/flows/:id/domain."""

    domain: Text
    subdomain: Annotated[str, Field(max_length=1024)] | None = None


class EmptyBody(Strict):
    """An action that needs nothing but its path."""


class ApplyBody(Strict):
    """POST /connect/flows/:id/apply. `digest` is the plan's that was shown. `credentials` are used for this request
    and forgotten; the way lists them."""

    way: Way
    digest: Text
    credentials: Credentials | None = Field(None, repr=False)


class UndoBody(Strict):
    """POST /connect/flows/:id/undo. `way` is the one that wrote, unless another is given; `digest` is needed once what
    the flow wrote was changed meanwhile, and is in that answer."""

    way: Way | None = None
    digest: Text | None = None
    credentials: Credentials | None = Field(None, repr=False)


class ShareBody(Strict):
    """POST /sharing/connect."""

    config: dict[str, Any]
    expires_in_days: Annotated[int, Field(ge=1, le=365)] | None = Field(None, alias="expiresInDays")


class ConfigurationBody(Strict):
    """POST /connect/configurations."""

    config: dict[str, Any]
    expires_in_days: Annotated[int, Field(ge=1, le=365)] | None = Field(None, alias="expiresInDays")


class FlowShareBody(Strict):
    """POST /connect/flows/:id/share."""

    expires_in_days: Annotated[int, Field(ge=1, le=365)] | None = Field(None, alias="expiresInDays")


def flow(of: Flow, certificates: Mapping[str, CertificateState] | None = None) -> dict[str, Any]:
    """A flow, whole: what it shows is the same in every answer and event, but for `certificates`, of enrolled names."""
    looked = of.looked or {}
    return {
        "id": of.id,
        "job_id": of.job_id,
        "state": of.state,
        "version": of.version,
        "domain": of.domain,
        "subdomain": of.subdomain,
        "host": of.host,
        "user_id": of.user_id,
        "created_at": of.created_at,
        "updated_at": of.updated_at,
        "warnings": of.warnings,
        "steps": looked.get("steps"),
        "provider": looked.get("provider"),
        "ways": looked.get("ways"),
        "recordConflicts": looked.get("conflicts"),
        "records": [_record(requested, of, number) for number, requested in enumerate(of.requested)],
        "plan": of.plan,
        "way": of.way,
        "setup_type": flow_events.setup_type(of.way),
        "written": _written(of),
        "handover": _handover(of),
        "propagation": _propagation(of),
        "enrolments": [_enrolment(each, certificates or {}) for each in of.enrolments],
        "error": of.error,
    }


def _record(requested: Mapping[str, Any], of: Flow, number: int) -> dict[str, Any]:
    seen = of.statuses[number] if number < len(of.statuses) else {}
    fields = {name: requested[name] for name in ("type", "host", "value", "ttl", "priority") if name in requested}
    return fields | {"status": "unknown"} | dict(seen) | _manual(of, number)


def _manual(of: Flow, number: int) -> dict[str, Any]:
    """What to type into the provider's form, once the provider is known."""
    for way in (of.looked or {}).get("ways", ()):
        if way["way"] == "manual" and number < len(way["records"]):
            return {"manual": way["records"][number]}
    return {}


def _written(of: Flow) -> list[dict[str, Any]] | None:
    """Record sets that the flow has written, each with what was there before; none if it has written none."""
    return [dict(entry) for entry in of.journal] or None


def _handover(of: Flow) -> dict[str, Any] | None:
    """Where the person goes to let a Domain Connect provider apply the template, and with what they came back: what
    that states is the browser's word; the DNS decides. `description` is the provider's text, to be shown as text."""
    if of.handover is None or "url" not in of.handover:
        return None
    return {name: of.handover.get(name) for name in ("url", "returned", "error", "description")}


def _enrolment(enrolment: Mapping[str, Any], certificates: Mapping[str, CertificateState]) -> dict[str, Any]:
    is_served = enrolment["product"] != "monitor" and enrolment["name"] in certificates
    return dict(enrolment) | ({"certificate": certificates[enrolment["name"]]} if is_served else {})


def _propagation(of: Flow) -> dict[str, Any] | None:
    status = flow_events.propagation_status(of)
    if status is None:
        return None
    is_looked_for = of.state in (State.WAITING, State.PROPAGATING)
    return {
        "status": status,
        "since": of.since,
        "looks": of.looks,
        "next_look_at": of.due_at if is_looked_for else None,
    }


def shared_link(share: Share, base_url: str) -> dict[str, Any]:
    return {
        "id": share.id,
        "link": link_of(base_url, share.id),
        "job_id": share.job_id,
        "domain": share.domain,
        "subdomain": share.subdomain,
        "created_at": share.created_at,
        "expires_at": share.expires_at,
    }


def configuration(of: RegisteredConfiguration) -> dict[str, Any]:
    return {"id": of.id, "config": of.config, "created_at": of.created_at, "expires_at": of.expires_at}


def link_of(base_url: str, share_id: str) -> str:
    return f"{base_url}/share/{share_id}"
