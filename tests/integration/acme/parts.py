"""What the ACME tests are made of: Pebble, an origin of challenge answers, and issuers put together as the monitor does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from bench.lab.pebble import Pebble
from common.clock import SystemClock
from common.db.pool import Database
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.acme.opening import open_acme
from monitor.certificates.issuance import signing_request
from monitor.certificates.issuers import Issuers
from monitor.certificates.phases import Phases
from tests.journal import MemoryJournal

DOMAIN = "shop.customer.example"


class Answering:
    """Answers every HTTP-01 challenge as an edge does: with what it was asked for and the account's thumbprint."""

    def __init__(self) -> None:
        self.thumbprint = ""
        self.asked: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        token = head.split()[1].rpartition("/")[2]
        self.asked.append(token)
        body = f"{token}.{self.thumbprint}"
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
async def issuers(
    pebble: Pebble, database: Database, keyring: Keyring, *, directories: str = "", ca_file: Path | None = None, **more: str
) -> AsyncIterator[Issuers]:
    """As the monitor opens them; `more` are settings without their prefix, in lower case."""
    environ = {
        "FRONTAGE_ACME_DIRECTORY": directories or pebble.directory,
        "FRONTAGE_ACME_CA_FILE": str(ca_file or pebble.ca_file),
        "FRONTAGE_DNS_SERVERS": pebble.dns,
        "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        **{f"FRONTAGE_{name.upper()}": value for name, value in more.items()},
    }
    async with open_acme(load(environ), database, keyring, SystemClock()) as opened:
        yield opened


def new_request(domain: str = DOMAIN) -> tuple[ec.EllipticCurvePrivateKey, x509.CertificateSigningRequest]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, signing_request(domain, key)


class Attempt:
    """One attempt at one domain, with what came of it."""

    def __init__(self, domain: str = DOMAIN, journal: MemoryJournal | None = None) -> None:
        self.domain = domain
        self.key, self.request = new_request(domain)
        self.journal = journal or MemoryJournal()
        self.phases = Phases(SystemClock())
