"""Flows of the connect modal, sharing links and registered configurations: bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.schemas.bodies import Strict
from common.flows.ways import WayName

MOST_CREDENTIALS = 12
Text = Annotated[str, Field(min_length=1, max_length=1024)]
ConfigurationId = Annotated[str, Field(pattern=r"^cfg_[0-9a-f]{32}$")]
Secret = Annotated[str, Field(min_length=1, max_length=8192)]

Credentials = Annotated[dict[Text, Secret], Field(max_length=MOST_CREDENTIALS)]


class ConnectBody(Strict):
    """POST /connect/flows: the keys of the configuration, and the domain if it is known already.

    `configuration_id`: the registered configuration that the others stand on. `share`: the id of the sharing link
    that was opened, in its place.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    domain: Text | None = None
    subdomain: Annotated[str, Field(max_length=1024)] | None = None
    share: Text | None = None
    configuration_id: ConfigurationId | None = Field(None, alias="configurationId")

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the keys of the configuration, which stand beside the named fields."""
        return self.model_extra or {}


class DomainBody(Strict):
    """POST /connect/flows/:id/domain."""

    domain: Text
    subdomain: Annotated[str, Field(max_length=1024)] | None = None


class EmptyBody(Strict):
    """An action that needs nothing but its path."""


class ApplyBody(Strict):
    """POST /connect/flows/:id/apply.

    `digest` is the plan's that was shown. `credentials` are used for this request and forgotten; the way lists
    them.
    """

    way: WayName
    digest: Text
    credentials: Credentials | None = Field(None, repr=False)


class UndoBody(Strict):
    """POST /connect/flows/:id/undo.

    `way` is the one that wrote, unless another is given; `digest` is needed once what the flow wrote was changed
    meanwhile, and is in that answer.
    """

    way: WayName | None = None
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
