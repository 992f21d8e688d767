"""A customer's zone at a Domain Connect provider, and an installation whose templates the provider has accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from api.connect.signing import new_private_key, public_key_records
from bench.lab.domain_connect import DomainConnectProvider, UpdateStore
from bench.lab.knot import Knot
from common.connect.domain_connect.templates import SERVICES, for_installation
from common.db import domain_connect_keys
from tests.integration.api.connecting import APEX, CUSTOMER, PARENT, World, open_world, zone_file

OUR_ID = "frontage.test"


@asynccontextmanager
async def serve_provider() -> AsyncIterator[tuple[Knot, DomainConnectProvider]]:
    """The provider writes into knot, which has the zones `PARENT` and `CUSTOMER`."""
    templates = [for_installation(each, OUR_ID, "Acme", "127.0.0.1") for each in SERVICES]
    async with Knot.serve({"test": zone_file(PARENT), APEX: zone_file(CUSTOMER)}) as knot:
        store = UpdateStore(knot.address, APEX)
        async with DomainConnectProvider.serve(APEX, store, knot.address, templates) as provider:
            provider.name_servers = [f"ns.{APEX}"]
            await knot.add(APEX, "_domainconnect", "TXT", f'"{provider.authority}"')
            yield knot, provider


@asynccontextmanager
async def connected(dsn: str, state_dir: Path, probe_port: int, knot: Knot, **environ: str) -> AsyncIterator[World]:
    """An installation with an id and a key, whose public part is published."""
    settings: dict[str, Any] = {"DOMAIN_CONNECT_PROVIDER_ID": OUR_ID, **environ}
    async with open_world(dsn, state_dir, probe_port, knot.address, **settings) as world:
        private_key, label = new_private_key(), domain_connect_keys.label_of(1)
        envelope = world.service.keyring.seal(private_key, domain_connect_keys.key_identity(label))
        async with world.service.database.transaction() as connection:
            await domain_connect_keys.add(connection, 1, envelope, signs=True)
        for text in public_key_records(private_key):
            await knot.add("test", f"{label}.frontage", "TXT", f'"{text}"')
        yield world
