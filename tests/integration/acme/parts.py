"""What the ACME tests are made of: an answerer of challenges, issuers put together as the monitor does, attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from bench.lab.pebble import Pebble
from common.clock import SystemClock
from common.db.acme_accounts import find_key
from common.db.pool import Database
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.acme.opening import open_acme
from monitor.certificates.issuance import check_leaf, signing_request
from monitor.certificates.issuer import Issued, Issuer
from monitor.certificates.phases import Phases
from tests.journal import MemoryJournal

DOMAIN = "shop.customer.example"
PHASES = ["checks", "order", "challenge", "validation", "finalize", "download"]


class Answering:
    """Answers HTTP-01 challenges on a port of its own as an edge does.

    `is_wrong` has it answer something else, and `ready` has it wait before each answer.
    """

    def __init__(self) -> None:
        self.thumbprint = ""
        self.is_wrong = False
        self.ready: Callable[[], Awaitable[None]] | None = None
        self.asked: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        token = head.split()[1].rpartition("/")[2]
        self.asked.append(token)
        if self.ready is not None:
            await self.ready()
        body = "Welcome to our shop" if self.is_wrong else f"{token}.{self.thumbprint}"
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def answering() -> AsyncIterator[Answering]:
    answers = Answering()
    server = await asyncio.start_server(answers.answer, "127.0.0.1", 0)
    answers.port = server.sockets[0].getsockname()[1]
    try:
        yield answers
    finally:
        server.close()


@asynccontextmanager
async def opened(
    pebble: Pebble,
    database: Database,
    keyring: Keyring,
    answers: Answering,
    *directories: str,
    trusted_key_seconds: float = 3.0,
    orders_end_seconds: float = 10.0,
    **more: str,
) -> AsyncIterator[Issuer]:
    """The issuers as the monitor opens them; `more` are settings, in lower case and without their prefix."""
    environ = {
        "FRONTAGE_ACME_DIRECTORY": ",".join(directories or (pebble.directory,)),
        "FRONTAGE_ACME_CA_FILE": str(pebble.ca_file),
        "FRONTAGE_DNS_SERVERS": pebble.dns,
        "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        **{f"FRONTAGE_{name.upper()}": value for name, value in more.items()},
    }
    async with open_acme(
        load(environ),
        database,
        keyring,
        SystemClock(),
        trusted_key_seconds=trusted_key_seconds,
        orders_end_seconds=orders_end_seconds,
    ) as issuer:
        async with database.connection() as connection:
            key = await find_key(connection)
        assert key is not None
        answers.thumbprint = key.thumbprint
        yield issuer


def new_request(domain: str = DOMAIN) -> tuple[ec.EllipticCurvePrivateKey, x509.CertificateSigningRequest]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, signing_request(domain, key)


class Attempts:
    """Attempts at one domain, with one key and one journal, as for a claimed order."""

    def __init__(self, domain: str = DOMAIN, journal: MemoryJournal | None = None) -> None:
        self.domain = domain
        self.key, self.request = new_request(domain)
        self.journal = journal or MemoryJournal()
        self.phases = Phases(SystemClock())

    async def by(self, issuer: Issuer, *, replaces: Issued | None = None) -> Issued:
        """One more; what it gives is checked as issuance does."""
        self.phases = Phases(SystemClock())
        issued = await issuer.issue(self.domain, self.request, self.phases, self.journal, replaces=replaces)
        check_leaf(issued.chain, self.domain, self.key)
        return issued
