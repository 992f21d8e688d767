"""What the monitor's tests are made of: an application, its domains, issuers to order, and what became of it all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from cryptography import x509

from common.clock import SystemClock
from common.db import certificates, order_queue, orders, revocations
from common.db.ca_ledger import Limits
from common.db.pool import Database
from common.secrets import Keyring, load_keyring
from monitor.certificates.dns_moved_away import FindLead, Lead
from monitor.certificates.internal import open_internal
from monitor.certificates.issuance import Issuance
from monitor.certificates.issuer import IssuanceFailed, Issued, Issuer, Journal, Placed, RenewalWindow
from monitor.certificates.phases import Phases
from monitor.certificates.rehearsal import Rehearse, rehearse_nothing
from monitor.certificates.revoking import Revoking
from monitor.claims import Queue, Runner
from tests import rows
from tests.beside import beside
from tests.waiting import SECONDS, until

APPLICATION = "app-one"
OTHER_APPLICATION = "app-two"
DOMAIN = "shop.customer.example"


class CountingIssuer:
    """The internal issuer, counting; fails its first `failures` orders, and lets `before` do what it will."""

    name = "internal"

    def __init__(self, state_dir: Path, *, failures: int = 0) -> None:
        self._issuer = open_internal(state_dir, keyring(state_dir), SystemClock())
        self._failures = failures
        self.issued: list[str] = []
        self.before: Callable[[], Awaitable[None]] | None = None

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        if self.before is not None:
            await self.before()
        if self._failures:
            self._failures -= 1
            raise IssuanceFailed("the authority is out to lunch")
        self.issued.append(domain)
        return await self._issuer.issue(domain, request, phases, journal, replaces=replaces)

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        return None

    async def revoke(self, issued: Issued, reason: int) -> None: ...


class LimitedIssuer(CountingIssuer):
    """One that counts, and keeps the journal as an ACME issuer does; `window` is what it says of renewals."""

    def __init__(self, state_dir: Path, *, counts_renewals: bool = True, window: RenewalWindow | None = None) -> None:
        super().__init__(state_dir)
        self._counts_renewals = counts_renewals
        self.window = window
        self.placed: list[str] = []
        self.replaced: list[Issued | None] = []
        self.revoked: list[tuple[Issued, int]] = []
        self.refuses_validation = False

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        placed = journal.placed
        if placed is None:
            await journal.reserve(self.name, is_exempt=replaces is not None and not self._counts_renewals)
            placed = Placed(self.name, f"https://ca.example/order/{len(self.placed)}", datetime.now(UTC))
            self.placed.append(domain)
            self.replaced.append(replaces)
            await journal.record_placed(placed)
        if self.refuses_validation:
            await journal.record_failed_validation(placed)
            raise IssuanceFailed("the CA could not fetch the challenge", kind="validation")
        return await super().issue(domain, request, phases, journal, replaces=replaces)

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        return self.window

    async def revoke(self, issued: Issued, reason: int) -> None:
        self.revoked.append((issued, reason))


class HastyRandom(Random):
    """Chance that always chooses the shortest: back-off without the waiting."""

    def uniform(self, a: float, b: float) -> float:
        return 0.01 * a if a > 0 else a


async def add_application(database: Database, application_id: str = APPLICATION) -> None:
    async with database.transaction() as connection:
        await rows.add_application(connection, application_id)


async def power(
    database: Database,
    domain: str = DOMAIN,
    application_id: str = APPLICATION,
    *,
    product: str = "power",
    hold_seconds: float = 10.0,
) -> None:
    """What the API does in one transaction, and the routing of it."""
    async with database.transaction() as connection:
        await certificates.lock_domain(connection, domain)
        await connection.execute(
            "insert into domains (domain, product, application_id) values ($1, $2, $3)",
            domain,
            product,
            application_id,
        )
        await orders.request_order(connection, domain, application_id, hold_seconds=hold_seconds)


async def remove(database: Database, domain: str = DOMAIN, *, product: str = "power") -> None:
    async with database.transaction() as connection:
        await certificates.lock_domain(connection, domain)
        await connection.execute("delete from domains where domain = $1 and product = $2", domain, product)
        await certificates.release(connection, domain)


def keyring(state_dir: Path) -> Keyring:
    return load_keyring(state_dir / "master.key", create=True)


async def leads_here(domain: str, application_id: str) -> Lead:
    return "here"


def make_issuance(
    database: Database,
    issuer: Issuer,
    keys: Keyring,
    *,
    random: Random | None = None,
    find_lead: FindLead | None = None,
    limits: Limits | None = None,
    rehearse: Rehearse = rehearse_nothing,
    **options: Any,
) -> Issuance:
    return Issuance(
        database,
        issuer,
        keys,
        SystemClock(),
        random or HastyRandom(),
        find_lead=find_lead or leads_here,
        rehearse=rehearse,
        limits=limits or Limits(),
        **options,
    )


def make_runner(
    database: Database,
    issuer: Issuer,
    keys: Keyring,
    *,
    lease_seconds: float = 10.0,
    poll_seconds: float = 0.1,
    random: Random | None = None,
    find_lead: FindLead | None = None,
    limits: Limits | None = None,
    queue: Queue[order_queue.Order] = order_queue,
    concurrency: int = 4,
    **options: Any,
) -> Runner[order_queue.Order]:
    random = random or HastyRandom()
    issuance = make_issuance(database, issuer, keys, random=random, find_lead=find_lead, limits=limits, **options)
    return Runner(
        database,
        queue,
        issuance.perform,
        concurrency=concurrency,
        random=random,
        lease_seconds=lease_seconds,
        poll_seconds=poll_seconds,
    )


def make_revoking_runner(database: Database, issuer: Issuer) -> Runner[revocations.Revocation]:
    return Runner(
        database,
        revocations,
        Revoking(database, issuer).perform,
        concurrency=2,
        random=HastyRandom(),
        poll_seconds=0.1,
    )


@asynccontextmanager
async def running(*runners: Runner[Any]) -> AsyncIterator[None]:
    async with beside(*(runner.run() for runner in runners)):
        yield


async def fetch(database: Database, statement: str, *values: object) -> list[dict[str, Any]]:
    async with database.connection() as connection:
        return [dict(row) for row in await connection.fetch(statement, *values)]


async def order_of(database: Database, domain: str = DOMAIN) -> dict[str, Any] | None:
    rows = await fetch(database, "select * from orders where domain = $1", domain)
    return rows[0] if rows else None


async def certificates_of(database: Database, domain: str = DOMAIN) -> list[dict[str, Any]]:
    return await fetch(database, "select * from certificates where domain = $1", domain)


async def answers(database: Database) -> bool:
    return bool(await fetch(database, "select 1"))


async def until_live(database: Database, domain: str = DOMAIN, *, seconds: float = SECONDS) -> None:
    async def is_live() -> bool:
        rows = await fetch(
            database,
            "select 1 from orders join certificates using (domain, application_id) where domain = $1"
            " and state = 'issued' and lease_until is null and live_at >= issued_at and released_at is null",
            domain,
        )
        return bool(rows)

    await until(is_live, seconds=seconds)


async def go_live(database: Database) -> None:
    """Have the domain powered, and wait for its certificate."""
    await power(database)
    await until_live(database)
