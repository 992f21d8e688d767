"""Sharing links: a configuration that a colleague opens without an account of the partner's. Stores and finds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.access import Access
from api.connect.resolution import choose_domain, resolve, resolve_without_domain
from api.errors import FLOW_STATE, NOT_FOUND, Refused, invalid_parameter
from api.schemas.connect import ShareBody
from api.services.credentials import refuse_ended_key
from api.services.placeholder_values import placeholder_values_of
from common.connect.configuration import Configuration, InvalidConfiguration, parse_configuration
from common.db import connect_flows, flow_ends, shares
from common.db.applications import Application
from common.db.connect_flows import Flow
from common.db.pool import Connection, Database
from common.db.shares import LIFETIME_DAYS, ParentEnded, Provenance, Share
from common.errors import InvalidName
from common.names import parse_domain
from common.records import as_json
from common.settings import Settings

_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True, slots=True)
class SharingService:
    """Sharing links. One instance per process."""

    database: Database
    settings: Settings

    async def share(self, access: Access, body: ShareBody) -> Share:
        """Make a link to a configuration that is given with full rights. Raises: `Refused`."""
        application = access.application
        try:
            configuration = parse_configuration(body.config)
        except InvalidConfiguration as error:
            raise Refused(invalid_parameter("config"), hint=f"{error.key}: expected {error}") from error
        domain, subdomain = _prefilled(configuration)
        return await self._store(
            application.id,
            config=configuration.stored,
            domain=domain,
            subdomain=subdomain,
            records=self._plain_records(application, configuration),
            user_id=configuration.user_id,
            job_id=connect_flows.new_job_id(),
            days=body.expires_in_days,
            provenance=Provenance(vouched=True, secret_generation=access.secret_generation, by_key=access.by_key),
        )

    async def share_flow(self, access: Access, flow: Flow, days: int | None) -> Share:
        """Make a link to the flow's configuration. Raises: `Refused`.

        What is done through it belongs to the flow's job; what ends the flow ends the link.
        """
        try:
            return await self._store(
                flow.application_id,
                config=flow.shared_config,
                domain=flow.domain,
                subdomain=flow.subdomain,
                records=[as_json(each.record) for each in flow.requested],
                user_id=flow.user_id,
                job_id=flow.job_id,
                days=days,
                provenance=Provenance(
                    flow.vouched,
                    flow.share_id,
                    flow.configuration_id,
                    flow.secret_generation,
                    by_key=access.by_key,
                    flow_by_key=flow.by_key,
                ),
                flow=flow,
            )
        except ParentEnded as error:
            hint = (
                "the link or the configuration that the flow began with has ended: make a link by POST /sharing/connect"
            )
            raise Refused(FLOW_STATE, code="link_ended", hint=hint) from error

    async def list_shares(self, application: Application, *, before: datetime | None, limit: int) -> list[Share]:
        """Return the application's links, newest first."""
        async with self.database.connection() as connection:
            return await shares.list_shares(connection, application.id, before=before, limit=limit)

    async def revoke(self, application: Application, share_id: str) -> None:
        """Revoke a link of the application. Raises: `Refused`."""
        was_ours = False
        if _ID.fullmatch(share_id):
            async with self.database.transaction() as connection:
                was_ours = await shares.revoke(connection, application.id, share_id)
        if not was_ours:
            raise Refused(NOT_FOUND, code="link_not_found", hint="no such link, or it has expired")

    async def find(self, share_id: str) -> Share | None:
        """Return a link that has not ended."""
        if not _ID.fullmatch(share_id):
            return None
        async with self.database.connection() as connection:
            return await shares.get_share(connection, share_id)

    async def _store(
        self,
        application_id: str,
        *,
        config: Mapping[str, Any],
        domain: str | None,
        subdomain: str | None,
        records: list[dict[str, Any]],
        user_id: str | None,
        job_id: str,
        days: int | None,
        provenance: Provenance,
        flow: Flow | None = None,
    ) -> Share:
        async with self.database.transaction() as connection:
            await refuse_ended_key(connection, provenance.by_key)
            if flow is not None and flow.by_key is not None:
                await _hold_flow(connection, flow)
            share_id = await shares.share_records(
                connection,
                application_id=application_id,
                domain=domain,
                subdomain=subdomain,
                records=records,
                config=config,
                job_id=job_id,
                user_id=user_id,
                lifetime_days=days or LIFETIME_DAYS,
                provenance=provenance,
            )
            share = await shares.get_share(connection, share_id)
        assert share is not None, "a link that was just made has not expired"
        return share

    def _plain_records(self, application: Application, configuration: Configuration) -> list[dict[str, Any]]:
        """Return the records for the page without JavaScript.

        They have no placeholders if the configuration names the domain.
        """
        around = placeholder_values_of(application, self.settings)
        if configuration.prefilled_domain is None:
            return resolve_without_domain(configuration, around)
        try:
            chosen = choose_domain(configuration, configuration.prefilled_domain, None)
            requested = resolve(configuration, chosen, around)
        except InvalidConfiguration:  # the modal asks for a domain that the configuration has records for
            return resolve_without_domain(configuration, around)
        return [as_json(each.record) for each in requested]


async def _hold_flow(connection: Connection, flow: Flow) -> None:
    """Keep the flow from being ended until the transaction is over. Raises: `Refused` where it has ended."""
    end = await flow_ends.find_end(connection, flow.id, locks=True)
    if end is not None:
        raise Refused(FLOW_STATE, code=end, hint=flow_ends.ENDS[end])


def _prefilled(configuration: Configuration) -> tuple[str | None, str | None]:
    if configuration.prefilled_domain is None:
        return None, None
    try:
        name = parse_domain(configuration.prefilled_domain)
    except InvalidName as error:
        raise Refused(invalid_parameter("config"), hint=f"prefilledDomain: {error}") from error
    return name.registrable, name.subdomain
