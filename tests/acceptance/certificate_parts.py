"""What the certificates' acceptance tests are made of: a world, and what is asked of it."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509

from bench.certificate_world import CertificateWorld, certificate_world
from bench.certificates import pebble_orders
from bench.demo.walk_clients import NoAnswer
from common.errors import DatabaseUnavailable
from tests import waiting

DOMAIN = "shop.customer.example"

# An order takes several requests to the CA; and an edge that is being restarted does not answer.
until = partial(waiting.until, seconds=60.0, pending=(DatabaseUnavailable, NoAnswer))


@asynccontextmanager
async def a_world(habits: Mapping[str, str] | None = None, **options: Any) -> AsyncIterator[CertificateWorld]:
    """Where the embedded Postgres' own user can go, too. `habits`: Pebble's; `options`: of `certificate_world`."""
    directory = Path(tempfile.mkdtemp(prefix="frontage-tests-", dir="/var/tmp"))
    try:
        async with certificate_world(directory, habits=habits, **options) as world:
            yield world
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def fetch(world: CertificateWorld, statement: str, *values: object) -> list[Any]:
    async with world.database.connection() as connection:
        return list(await connection.fetch(statement, *values))


async def are_live(world: CertificateWorld, domains: list[str]) -> bool:
    rows = await fetch(
        world,
        "select 1 from orders join certificates using (domain) where domain = any($1) and state = 'issued'"
        " and live_at >= issued_at and lease_until is null",
        domains,
    )
    return len(rows) == len(domains)


async def serves(world: CertificateWorld, edge: int, domain: str) -> bool:
    return (await world.visitor(edge).get(domain)).status == 200


async def seen_serial(world: CertificateWorld, edge: int, domain: str = DOMAIN) -> int:
    """Of the certificate that edge presents; what Pebble did not sign, or not for this name, is an error."""
    context = ssl.create_default_context(cafile=world.ca_file)
    port = world.edges[edge].settings.edge_https.port
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=domain)
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der).serial_number
    finally:
        writer.close()


async def assert_one_valid_certificate_each(world: CertificateWorld, domains: list[str], *, unsent: int = 0) -> None:
    """`unsent`: how many orders at most the ledger counts though Pebble may not have received them."""
    rows = await fetch(
        world,
        "select domain from certificates where released_at is null and not_after > now() and domain = any($1)"
        " order by domain",
        domains,
    )
    assert [row["domain"] for row in rows] == sorted(domains)
    for domain in domains:
        for edge in range(len(world.edges)):
            assert await serves(world, edge, domain)
    states = {row["state"]: row["n"] for row in await fetch(world, _LEDGER)}
    counted, sent = sum(states.values()), pebble_orders(world)
    assert states.get("placed", 0) <= sent <= counted <= sent + unsent, f"ledger {states}, Pebble {sent}"


_LEDGER = "select state, count(*)::int as n from ca_ledger where kind = 'order' group by state"
