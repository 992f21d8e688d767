"""Creates the ACME issuers from the settings: one key, one session, one issuer for each directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from common.addresses import tenant_policy
from common.caa import Authorization, find_authorization
from common.clock import Clock
from common.db.outages import level_of
from common.db.pool import Database
from common.dns import Resolver
from common.errors import DatabaseUnavailable, OperatorError
from common.liveness import await_edges
from common.logs import get_logger
from common.secrets import Keyring
from common.settings import Settings
from common.trust import authority_trust
from common.version import VERSION
from monitor.certificates.acme.account import AcmeAccount, open_key, thumbprint
from monitor.certificates.acme.issuer import AcmeIssuer
from monitor.certificates.acme.rollover import ORDERS_END_SECONDS, KeyRollover
from monitor.certificates.acme.transport import Transport, session_timeout
from monitor.certificates.issuer import IssuanceFailed
from monitor.certificates.issuers import Issuers

_log = get_logger("monitor.certificates.acme")

_EDGES_SECONDS: Final = 1.0
_TRUSTED_KEY_SECONDS: Final = 3.0  # `KeyRollover` reads it more often
_CONNECTIONS: Final = 32  # to each CA
_IDLE_SECONDS: Final = 15.0  # less than the CAs', so that no request is sent on a connection that is about to close


@asynccontextmanager
async def open_acme(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    clock: Clock,
    *,
    trusted_key_seconds: float = _TRUSTED_KEY_SECONDS,
    orders_end_seconds: float = ORDERS_END_SECONDS,
) -> AsyncIterator[Issuers]:
    """Open the issuers of ``FRONTAGE_ACME_DIRECTORY``, in its order, for the block.

    Edges know the account key's thumbprint when the block begins. An order uses an account key read in the last
    `trusted_key_seconds` without reading it again; while the key changes, orders that run have `orders_end_seconds`.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    if not settings.acme_directory:
        raise OperatorError("FRONTAGE_ISSUER=acme needs FRONTAGE_ACME_DIRECTORY: the address of a CA's ACME directory")
    trust = authority_trust(settings)
    key = await open_key(database, keyring)
    before_validation = _make_edge_wait(database, clock)
    await before_validation()
    connector = aiohttp.TCPConnector(
        ssl=trust,
        limit=0,
        limit_per_host=_CONNECTIONS,
        keepalive_timeout=_IDLE_SECONDS,
        resolver=aiohttp.ThreadedResolver(),
    )
    headers = {"User-Agent": f"frontage/{VERSION}"}  # RFC 8555 §6.1
    async with aiohttp.ClientSession(connector=connector, timeout=session_timeout(), headers=headers) as session:
        issuers, accounts = [], []
        for directory in settings.acme_directory:
            transport = Transport(session, directory, key, clock)
            account = _account(settings, database, transport, keyring, directory, trusted_key_seconds)
            accounts.append(account)
            issuers.append(
                AcmeIssuer(
                    transport,
                    account,
                    clock,
                    before_validation=before_validation,
                    profile=settings.acme_profile,
                )
            )
        _log.info(
            "certificates are ordered from", directories=list(settings.acme_directory), thumbprint=thumbprint(key)
        )
        rollover = KeyRollover(database, keyring, accounts, orders_end_seconds=orders_end_seconds)
        tasks = [
            asyncio.create_task(_register_accounts(issuers), name="acme: register accounts"),
            asyncio.create_task(rollover.run(), name="acme: change the account key"),
        ]
        try:
            yield Issuers(issuers, _make_caa_lookup(settings), clock)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _account(
    settings: Settings,
    database: Database,
    transport: Transport,
    keyring: Keyring,
    directory: str,
    trusted_seconds: float,
) -> AcmeAccount:
    """Create the account at the CA of that directory."""
    authority = urlsplit(directory).netloc
    return AcmeAccount(
        database,
        transport,
        keyring,
        email=settings.acme_email,
        external=next((each for each in settings.acme_eab if each.authority == authority), None),
        trusted_seconds=trusted_seconds,
        caa_identities=settings.acme_caa_identities,
    )


async def _register_accounts(issuers: Sequence[AcmeIssuer]) -> None:
    """Fetch directories and accounts before the first order; if that fails, the order fetches them again."""
    for issuer in issuers:
        try:
            await issuer.identify()
        except (IssuanceFailed, DatabaseUnavailable) as error:
            _log.log(level_of(error), "cannot make an account yet", authority=issuer.authority, reason=str(error))


def _make_edge_wait(database: Database, clock: Clock) -> Callable[[], Awaitable[None]]:
    """Return a function that waits until edges can answer challenges."""

    async def await_all() -> None:
        """Wait until every edge with a lease has applied the thumbprint and the running orders."""
        with suppress(DatabaseUnavailable):  # edges answer challenges without it, and so an order can go on
            reach = await await_edges(database, clock, within_seconds=_EDGES_SECONDS)
            if reach.behind:
                _log.warning("edges may not know of an order that runs", edges=reach.labels)

    return await_all


def _make_caa_lookup(settings: Settings) -> Callable[[str], Awaitable[Authorization]]:
    """Return a function that finds the CAA records of a domain."""
    resolver = Resolver(settings.dns_servers, tenant_policy(settings))

    async def look_up(domain: str) -> Authorization:
        async with resolver.open_pass() as questions:
            return await find_authorization(questions, domain)

    return look_up
