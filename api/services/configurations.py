"""Registered configurations of the connect modal: what a server lets the flows of browsers ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from api.access import Access
from api.errors import FORBIDDEN, NOT_FOUND, Refused, invalid_parameter
from api.schemas.connect import ConfigurationBody
from api.services.credentials import refuse_ended_key
from common.connect.configuration import InvalidConfiguration, parse_configuration
from common.connect.rights import BeyondRights, merge
from common.db import audit, connect_configurations
from common.db.applications import Application
from common.db.connect_configurations import MOST, RegisteredConfiguration, TooManyConfigurations
from common.db.pool import Database

_LARGEST_BYTES: Final = 16 * 1024
_NOT_OF_ALL: Final = ("prefilledDomain", "userId")


@dataclass(frozen=True, slots=True)
class ConfigurationService:
    """Use cases of registered configurations. One instance per process; each call takes the caller's application."""

    database: Database

    async def register(self, access: Access, body: ConfigurationBody) -> RegisteredConfiguration:
        """Return the configuration; registered again, it is the same one. Raises: `Refused`."""
        stored = _read(body.config)
        try:
            async with self.database.transaction() as connection:
                await refuse_ended_key(connection, access.by_key)
                registered, is_new = await connect_configurations.register(
                    connection,
                    access.application.id,
                    stored,
                    secret_generation=access.secret_generation,
                    lifetime_days=body.expires_in_days,
                    by_key=access.by_key,
                )
                if is_new:
                    await audit.record(
                        connection,
                        "configuration.register",
                        registered.id,
                        application_id=access.application.id,
                        after={"config": stored},
                    )
                return registered
        except TooManyConfigurations as error:
            hint = f"the application has {MOST} configurations: delete some, or register them with expiresInDays"
            raise Refused(FORBIDDEN, code="too_many_configurations", hint=hint) from error

    async def list_registered(
        self, application: Application, *, before: datetime | None, limit: int
    ) -> list[RegisteredConfiguration]:
        """Return the application's configurations, newest first."""
        async with self.database.connection() as connection:
            return await connect_configurations.list_registered(connection, application.id, before=before, limit=limit)

    async def find(self, application: Application, configuration_id: str) -> RegisteredConfiguration:
        """Return a configuration of the application. Raises: `Refused`."""
        async with self.database.connection() as connection:
            found = await connect_configurations.find(connection, configuration_id, application.id)
        if found is None:
            raise _unknown()
        return found

    async def remove(self, application: Application, configuration_id: str) -> None:
        """Remove it, with its links and its flows that are not finished. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            config = await connect_configurations.remove(connection, application.id, configuration_id)
            if config is None:
                raise _unknown()
            await audit.record(
                connection,
                "configuration.remove",
                configuration_id,
                application_id=application.id,
                before={"config": config},
            )


def named_configuration(access: Access, named: str | None) -> str | None:
    """Return the id of the configuration that the token is for, or that the request names. Raises: `Refused`."""
    claimed = access.configuration_id
    if claimed is not None and named not in (None, claimed):
        raise Refused(
            FORBIDDEN,
            code="configuration",
            hint="the token is for another configuration: leave configurationId out, or use a token for this one",
        )
    return named if claimed is None else claimed


def complete(access: Access, ground: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration that stands on `ground`, with the keys that were given beside it.

    A browser changes nothing of it that counts. Raises: `Refused`.
    """
    if not access.is_browsers:
        return dict(ground) | {key: value for key, value in given.items() if value is not None}
    try:
        return merge(ground, given)
    except BeyondRights as error:
        raise beyond_rights(error) from error


def beyond_rights(error: BeyondRights) -> Refused:
    """Return the refusal of what is not a browser's to give."""
    return Refused(FORBIDDEN, code=error.code, hint=str(error))


def _unknown() -> Refused:
    hint = "there is no such configuration, or it has ended: have the server register it (POST /connect/configurations)"
    return Refused(NOT_FOUND, code="configuration_not_found", hint=hint)


def _read(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a configuration that is to be registered. Raises: `Refused`."""
    try:
        parsed = parse_configuration(config)
    except InvalidConfiguration as error:
        raise Refused(invalid_parameter("config"), hint=f"{error.key}: expected {error}") from error
    stored = dict(parsed.stored)
    for key in _NOT_OF_ALL:
        if key in stored:
            hint = f"leave {key} out: a configuration is for all customers; a token or a sharing link is for one"
            raise Refused(invalid_parameter("config"), hint=hint)
    if len(json.dumps(stored).encode()) > _LARGEST_BYTES:
        raise Refused(invalid_parameter("config"), hint=f"expected at most {_LARGEST_BYTES // 1024} KB")
    return stored
