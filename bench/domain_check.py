"""``python -m bench.domain_check``: how many domain checks one core of the API answers in a second.

Debian's ``knot`` serves the customers' zones and the zone above them, Debian's ``unbound`` is the resolver, and an
embedded Postgres has the application: each its own process, as is the client. The API runs in this process, whole:
HTTP, tokens, admission, questions, decisions. Every check is of another domain, after a few that are not measured: the
first one reads the list of public suffixes and the table of providers. What counts is the API's own CPU time, so that a
busy machine hardly changes it; the times are those that the client waits. The table is also written to
``bench/output/domain_check.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from api.app import build_app
from api.counters import Counters
from api.rules import application_tokens as applications
from api.serving import serving
from bench import output
from bench.lab.knot import Knot
from bench.lab.unbound import serve_unbound
from common import logs
from common.addresses import own_policy
from common.clock import SystemClock
from common.db.applications import NewApplication, client_secret_identity, create_application, webhook_secret_identity
from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.dns import Resolver
from common.errors import FrontageError, OperatorError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory, settle_garbage_collector
from common.secrets import Keyring, load_keyring
from common.settings import HostPort, load

GOAL_A_SECOND = 200
_PARENT, _CHILD = "127.0.0.1", "127.0.0.2"
_TOP = "test"
_PAGE_COLUMNS = 110
_UNMEASURED = 20
_CUSTOMER = """
@ NS ns1.hosting.{top}.
@ NS ns2.hosting.{top}.
@ A 192.0.2.1
@ MX 10 mail.elsewhere.{top}.
@ TXT "v=spf1 include:spf.elsewhere.{top} ~all"
www CNAME old.elsewhere.{top}.
* A 192.0.2.9
"""
_RECORDS = [
    {"type": "A", "host": "@", "value": "198.51.100.1", "ttl": 300},
    {"type": "CNAME", "host": "www", "value": "target.partner.test", "ttl": 300},
    {"type": "TXT", "host": "verify", "value": "partner=1", "ttl": 300},
]
_CASES: dict[str, dict[str, Any]] = {
    "provider and registration": {},
    "with conflicts of three records": {"dnsRecords": _RECORDS, "checkConflicts": True},
}


@dataclass(frozen=True, slots=True)
class DomainCheckFigure:
    """Times in milliseconds, as the client waits."""

    case: str
    checks: int
    failed: int
    cpu_seconds: float
    median_ms: float
    p99_ms: float

    @property
    def checks_a_second(self) -> float:
        """Of a core."""
        return self.checks / self.cpu_seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.domain_check", description=__doc__)
    parser.add_argument("--checks", type=int, default=1000, help="of each case (default: 1000)")
    parser.add_argument("--at-once", type=int, default=16, help="requests in progress (default: 16)")
    parser.add_argument("--client", metavar="JSON", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            if arguments.client:
                runner.run(_send(json.loads(arguments.client)))
            else:
                runner.run(_measure(arguments.checks, arguments.at_once))
    except FrontageError as error:
        sys.exit(f"bench: {error}")


async def _measure(checks: int, at_once: int) -> None:
    """Raises: `OperatorError`."""
    domains = [f"customer-{number}.{_TOP}" for number in range(checks)]
    async with _installation(domains) as job:
        await _run("what is read once", {**job, "fields": {}, "domains": domains[:_UNMEASURED], "at_once": 1})
        figures = [
            await _run(name, {**job, "fields": fields, "domains": domains, "at_once": at_once})
            for name, fields in _CASES.items()
        ]
    _print(figures)
    rows = [asdict(each) | {"checks_a_second": each.checks_a_second} for each in figures]
    output.write("domain_check", {"figures": rows})


@asynccontextmanager
async def _installation(domains: list[str]) -> AsyncIterator[dict[str, Any]]:
    """What a client needs: the URL, the application's id, and a token."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-bench-")))
        above, hosting = _above(domains), "@ NS ns1\nns1 A 127.0.0.2\nns2 A 127.0.0.2\n"
        parent = await stack.enter_async_context(Knot.serve({_TOP: above}, host=_PARENT))
        zones = {domain: _CUSTOMER.format(top=_TOP) for domain in domains} | {f"hosting.{_TOP}": hosting}
        port = parent.address.port
        await stack.enter_async_context(Knot.serve(zones, host=_CHILD, port=port))
        child = HostPort(_CHILD, port)
        resolver = await stack.enter_async_context(serve_unbound({_TOP: parent.address} | dict.fromkeys(zones, child)))
        settings = load(
            {
                "FRONTAGE_STATE_DIR": str(directory / "state"),
                "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
                "FRONTAGE_DNS_SERVERS": str(resolver),
                "FRONTAGE_API_REQUESTS_PER_SECOND": "100000",
                "FRONTAGE_API_REQUESTS_PER_SECOND_PER_ADDRESS": "100000",
            }
        )
        keyring = load_keyring(settings.key_file, create=True)
        dsn = await stack.enter_async_context(_postgres(directory / "postgres"))
        database = await stack.enter_async_context(open_pool(dsn, size=5, application_name="bench"))
        application_id, token = await _application(database, keyring)
        policy = own_policy(settings)
        app = build_app(
            settings,
            database,
            keyring,
            Resolver(settings.dns_servers, policy, authority_port=port),
            SystemClock(),
            Counters(),
            authority_port=port,
        )
        host, served = await stack.enter_async_context(serving(app, HostPort("127.0.0.1", 0)))
        settle_garbage_collector()
        yield {"url": f"http://{host}:{served}/checkdomain", "id": application_id, "token": token}


def _above(domains: list[str]) -> str:
    delegated = "".join(f"{domain.removesuffix(f'.{_TOP}')} NS ns1.hosting\n" for domain in domains)
    return f"@ NS ns\nns A {_PARENT}\nhosting NS ns1.hosting\nns1.hosting A {_CHILD}\n{delegated}"


@asynccontextmanager
async def _postgres(directory: Path) -> AsyncIterator[str]:
    postgres = EmbeddedPostgres(directory)
    try:
        dsn = postgres.start()
        await migrate(dsn)
        yield dsn
    finally:
        postgres.stop()


async def _application(database: Database, keyring: Keyring) -> tuple[str, str]:
    application_id, secret = applications.mint_id(), applications.mint_client_secret()
    new = NewApplication(
        application_id,
        name="bench",
        cname_target="target.partner.test",
        client_secret=keyring.seal(secret.encode(), client_secret_identity(application_id)),
        webhook_secret=keyring.seal(b"whsec_", webhook_secret_identity(application_id)),
    )
    async with database.transaction() as connection:
        await create_application(connection, new)
    return application_id, applications.mint_api_token(application_id, secret, SystemClock().now())


async def _run(name: str, job: dict[str, Any]) -> DomainCheckFigure:
    """Raises: `OperatorError` when the client fails."""
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.domain_check", "--client", json.dumps(job), stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout is not None
    await client.stdout.readline()  # it is about to send
    began = time.process_time()
    answered, _ = await client.communicate()
    spent = time.process_time() - began
    if client.returncode:
        raise OperatorError("the client failed")
    answers = json.loads(answered)
    times = [milliseconds for _, milliseconds in answers]
    failed = sum(status != 200 for status, _ in answers)
    return DomainCheckFigure(name, len(answers), failed, spent, median(times), quantiles(times, n=100)[98])


async def _send(job: dict[str, Any]) -> None:
    """The client: prints a line before it begins, then a status and a time for each check."""
    headers = {"applicationId": job["id"], "Authorization": f"Bearer {job['token']}"}
    room = asyncio.Semaphore(job["at_once"])
    async with aiohttp.ClientSession(headers=headers) as session:

        async def check(domain: str) -> tuple[int, float]:
            async with room:
                began = time.perf_counter()
                async with session.post(job["url"], json={"domain": domain, **job["fields"]}) as response:
                    await response.read()
                    return response.status, (time.perf_counter() - began) * 1000

        print("ready", flush=True)
        print(json.dumps(await asyncio.gather(*map(check, job["domains"]))))


def _print(figures: list[DomainCheckFigure]) -> None:
    table = Table(title=f"Domain checks: {GOAL_A_SECOND} a second of a core are the goal")
    for heading in ("case", "checks", "failed", "CPU ms a check", "checks/s of a core", "median ms", "p99 ms"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for each in figures:
        table.add_row(
            each.case,
            str(each.checks),
            str(each.failed),
            f"{1000 * each.cpu_seconds / each.checks:.2f}",
            f"{each.checks_a_second:.0f}",
            f"{each.median_ms:.1f}",
            f"{each.p99_ms:.1f}",
        )
    console = Console()
    Console(width=console.width if console.is_terminal else _PAGE_COLUMNS).print(table)


if __name__ == "__main__":
    main()
