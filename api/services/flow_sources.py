"""Where a new flow's configuration comes from, and what it may therefore do.

With full rights, a configuration is taken as it is sent. From a browser, a registered configuration or a sharing link
is the ground, of which the browser changes nothing that counts; without one, only the application's own settings
count (`common.connect.rights`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.access import Access
from api.errors import FORBIDDEN, Refused, invalid_parameter
from api.schemas.connect import ConnectBody
from api.services.configurations import ConfigurationService, beyond_rights, complete, named_configuration
from api.services.sharing import SharingService
from common.connect.configuration import Configuration
from common.connect.rights import BeyondRights, refuse_foreign_values
from common.db.connect_configurations import RegisteredConfiguration
from common.db.connect_flows import FlowRights
from common.db.shares import Share


@dataclass(frozen=True, slots=True)
class FlowSource:
    """`user_id`, `job_id`: of the sharing link, where it has them."""

    config: Mapping[str, Any]
    rights: FlowRights
    user_id: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class FlowSources:
    """Finds where a flow's configuration comes from. One instance per process."""

    sharing: SharingService
    configurations: ConfigurationService

    async def find(self, access: Access, body: ConnectBody) -> FlowSource:
        """Return where a flow's configuration comes from. Raises: `Refused`."""
        share = await self._share(access, body)
        registered = await self._registered(access, body, share)
        ground = _ground(share, registered)
        rights = _rights(access, share, registered)
        replaces_share = share is not None and bool(body.config) and not access.is_browsers
        config = body.config if ground is None or replaces_share else complete(access, ground, body.config)
        if share is None:
            return FlowSource(config, rights)
        return FlowSource(config, rights, share.user_id, share.job_id)

    async def _share(self, access: Access, body: ConnectBody) -> Share | None:
        """Return the sharing link that was opened. Raises: `Refused`.

        The token of a link opens no other flows than the link's.
        """
        share_id = body.share if access.share_id is None else access.share_id
        if share_id is None:
            return None
        if body.share not in (None, share_id):
            raise Refused(
                FORBIDDEN,
                code="link",
                hint="the token is of another sharing link: use the token of the link that was opened",
            )
        share = await self.sharing.find(share_id)
        if share is None or share.application_id != access.application.id:
            raise Refused(
                invalid_parameter("share"),
                code="link_not_found",
                hint="no such link, or it has expired: ask for a new one",
            )
        return share

    async def _registered(
        self, access: Access, body: ConnectBody, share: Share | None
    ) -> RegisteredConfiguration | None:
        """Return the registered configuration that the flow stands on. Raises: `Refused`."""
        configuration_id = named_configuration(access, body.configuration_id)
        if configuration_id is None:
            return None
        if share is not None:
            if share.configuration_id == configuration_id:
                return None  # the link holds it
            hint = "a sharing link has a configuration of its own: leave configurationId out"
            raise Refused(invalid_parameter("configurationId"), code="configuration", hint=hint)
        return await self.configurations.find(access.application, configuration_id)


def refuse_beyond_rights(access: Access, source: FlowSource, configuration: Configuration) -> None:
    """Refuse a browser's configuration that leads elsewhere than the application's settings do.

    One that a server has vouched for may. Raises: `Refused`.
    """
    if source.rights.vouched:
        return
    try:
        refuse_foreign_values(configuration, access.application)
    except BeyondRights as error:
        raise beyond_rights(error) from error


def _ground(share: Share | None, registered: RegisteredConfiguration | None) -> dict[str, Any] | None:
    if share is not None:
        return dict(share.config or {"dnsRecords": share.records})
    return None if registered is None else dict(registered.config)


def _rights(access: Access, share: Share | None, registered: RegisteredConfiguration | None) -> FlowRights:
    is_vouched = registered is not None or (share is not None and share.vouched)
    generations = [access.secret_generation]
    generations += [source.secret_generation for source in (share, registered) if source is not None]
    configuration_id = registered.id if registered is not None else share.configuration_id if share else None
    return FlowRights(
        vouched=is_vouched or not access.is_browsers,
        by_browser=access.is_browsers,
        share_id=None if share is None else share.id,
        configuration_id=configuration_id,
        secret_generation=min((each for each in generations if each is not None), default=None),
        by_key=access.by_key,
    )
