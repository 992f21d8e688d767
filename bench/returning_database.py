"""``python -m bench.returning_database``: visitors of domains enrolled the moment a stopped Postgres has returned.

Postgres is killed and started again before a running edge, several times. As soon as it answers, domains with
certificates are enrolled; after POST's wait for edges, a quarter of a second at most, a visitor of each connects, while
the edge may not yet follow the feed again.
Counted: TLS handshakes that the edge refused. There is no peer beside it: others hold no handshake.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import sys
import tempfile
import time
from pathlib import Path

from bench import output
from bench.enrolment import EnrolledDomain, enrol, until_applied
from bench.lone_edge import LoneEdge
from bench.peers.certificates import make_certificate
from bench.private_stage import private_environment
from common.clock import SystemClock
from common.db.applications import NewApplication, create_application
from common.db.migrate import migrate
from common.db.pool import open_pool
from common.db.session import open_session
from common.errors import FrontageError
from common.host_ports import HostPort
from common.liveness import await_edges
from common.postgres import EmbeddedPostgres
from common.processes import exited
from common.secrets import load_keyring

_ROUNDS = 7
_ZONE = "returning.localhost"
_START_SECONDS = 60.0
_AWAIT_EDGES_SECONDS = 0.25  # as POST does before it answers
_HANDSHAKE_SECONDS = 20.0


def main() -> None:
    """Run the fault run and print its counts."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.returning_database",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--visitors", type=int, default=147, help=f"in all, over {_ROUNDS} returns (147)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="frontage-returning-", ignore_cleanup_errors=True) as name:
            os.chmod(name, 0o755)  # Postgres is another user when we are root
            refused, waited = asyncio.run(_measure(Path(name), arguments.visitors // _ROUNDS))
    except FrontageError as error:
        sys.exit(f"bench.returning_database: {error}")
    print(f"{len(waited)} handshakes, {refused} refused; the slowest took {max(waited):.2f} s")
    figures = {"handshakes": len(waited), "refused": refused, "slowest_seconds": max(waited)}
    print(f"written to {output.write('returning_database', figures)}")


async def _measure(directory: Path, visitors: int) -> tuple[int, list[float]]:
    """Return how many handshakes were refused, and the seconds of each.

    Raises: `OperatorError`.
    """
    postgres = EmbeddedPostgres(directory)
    dsn = postgres.start()
    environ = private_environment(directory, DATABASE_URL=dsn, EDGE_WORKERS="1")
    edge = LoneEdge(environ, directory / "edge.log")
    try:
        await migrate(dsn)
        keyring = load_keyring(edge.settings.key_file, create=True)
        await _make_application(dsn)
        key, chain = make_certificate(f"*.{_ZONE}")

        def enrolments(number: int, count: int) -> list[EnrolledDomain]:
            return [
                EnrolledDomain(f"{number}-{n}.{_ZONE}", "app", "http://127.0.0.1:1/", chain, key) for n in range(count)
            ]

        first = await enrol(dsn, keyring, enrolments(0, 1))
        await edge.start(within_seconds=_START_SECONDS)
        await until_applied(edge.settings.edge_admin, first.version)
        refused, waited = 0, []
        context = ssl.create_default_context()  # one, for making it takes long
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        for number in range(1, 1 + _ROUNDS):
            await _restart(postgres)
            enrolled = enrolments(number, visitors)
            await enrol(dsn, keyring, enrolled)
            async with open_pool(dsn, size=1, application_name="frontage bench") as database:
                await await_edges(database, SystemClock(), within_seconds=_AWAIT_EDGES_SECONDS)
            visits = (_shake_hands(edge.https, each.domain, context) for each in enrolled)
            for seconds in await asyncio.gather(*visits):
                refused += seconds is None
                waited.append(seconds or 0.0)
        return refused, waited
    finally:
        await edge.stop()
        postgres.stop()


async def _make_application(dsn: str) -> None:
    connection = await open_session(dsn, "frontage bench")
    try:
        async with connection.transaction():
            new = NewApplication(id="app", name="A", cname_target="a.example", client_secret=b"s", webhook_secret=b"s")
            await create_application(connection, new)
    finally:
        connection.terminate()


async def _restart(postgres: EmbeddedPostgres) -> None:
    """Kill Postgres with SIGKILL, and start it again at the same address."""
    postgres.process.kill()
    await exited(postgres.process)
    postgres.launch()
    async with asyncio.timeout(_START_SECONDS):
        while not postgres.is_ready():  # noqa: ASYNC110 - its only sign is a file
            await asyncio.sleep(0.01)


async def _shake_hands(https: HostPort, domain: str, context: ssl.SSLContext) -> float | None:
    """Return the seconds of a handshake; None where the edge refused it."""
    begun_at = time.perf_counter()
    try:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            _, writer = await asyncio.open_connection(https.host, https.port, ssl=context, server_hostname=domain)
    except (OSError, TimeoutError):
        return None
    writer.transport.abort()
    return time.perf_counter() - begun_at


if __name__ == "__main__":
    main()
