"""Sharing links, what is behind them, and registered configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from typing_extensions import TypedDict

from api.answers.lists import ListOf, list_of
from common.db import connect_configurations, shares


class Share(TypedDict):
    """What is behind a sharing link: records to set, or a configuration of the connect modal."""

    id: str
    applicationId: str
    domain: str | None
    subdomain: str | None
    dnsRecords: Sequence[dict[str, Any]]
    config: Mapping[str, Any] | None
    job_id: str | None
    expires_at: datetime
    token: str
    """Opens flows, for an hour: of the link's domain and user, where it has them."""


class SharedLink(TypedDict):
    """A sharing link."""

    id: str
    link: str
    job_id: str | None
    domain: str | None
    subdomain: str | None
    created_at: datetime
    expires_at: datetime


class SharedLinks(ListOf[SharedLink]):
    """A part of the list of sharing links."""

    links: list[SharedLink]
    """Deprecated: the name of `items` in 1.0.0."""


class RegisteredConfiguration(TypedDict):
    """A registered configuration of the connect modal."""

    id: str
    config: Mapping[str, Any]
    created_at: datetime
    expires_at: datetime | None
    """null: it stays until it is deleted."""


class RegisteredConfigurations(ListOf[RegisteredConfiguration]):
    """A part of the list of registered configurations."""

    configurations: list[RegisteredConfiguration]
    """Deprecated: the name of `items` in 1.0.0."""


def share_content(share: shares.Share, token: str) -> Share:
    """Render what is behind a link, with a token that opens its flows."""
    return {
        "id": share.id,
        "applicationId": share.application_id,
        "domain": share.domain,
        "subdomain": share.subdomain,
        "dnsRecords": share.records,
        "config": share.config,
        "job_id": share.job_id,
        "expires_at": share.expires_at,
        "token": token,
    }


def shared_link(share: shares.Share, base_url: str) -> SharedLink:
    """Render a link; `base_url` is where the API is reached."""
    return {
        "id": share.id,
        "link": f"{base_url}/share/{share.id}",
        "job_id": share.job_id,
        "domain": share.domain,
        "subdomain": share.subdomain,
        "created_at": share.created_at,
        "expires_at": share.expires_at,
    }


def shared_links(found: Sequence[shares.Share], base_url: str, limit: int) -> SharedLinks:
    """Render a part of the list of links; a full one has a `next`."""
    items = [shared_link(each, base_url) for each in found]
    return {**list_of(items, _next([each.created_at for each in found], limit), limit), "links": items}


def configuration(found: connect_configurations.RegisteredConfiguration) -> RegisteredConfiguration:
    """Render a registered configuration."""
    return {
        "id": found.id,
        "config": found.config,
        "created_at": found.created_at,
        "expires_at": found.expires_at,
    }


def configurations(
    found: Sequence[connect_configurations.RegisteredConfiguration], limit: int
) -> RegisteredConfigurations:
    """Render a part of the list of registered configurations; a full one has a `next`."""
    items = list(map(configuration, found))
    return {**list_of(items, _next([each.created_at for each in found], limit), limit), "configurations": items}


def _next(moments: Sequence[datetime], limit: int) -> str | None:
    """Return where the next part begins: at what is older than the last item."""
    return f"{moments[-1].astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}" if len(moments) == limit else None
