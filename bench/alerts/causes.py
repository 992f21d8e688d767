"""What goes wrong, and how it is put right again: for each cause, the alerts that it must raise.

A cause is a context manager: it goes wrong at the block's beginning, and is put right at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.alerts.stage import (
    ADDRESS,
    DOWN,
    POLL_SECONDS,
    SECURED,
    WATCHED,
    AlertStage,
    another_edge,
    another_monitor,
    beside,
    repeat,
    run,
)
from bench.lab.ports import free_ports
from bench.lab.zone import Behaviour
from bench.process_tree import descendants
from common.secrets import new_master_key, write_key_file

_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that goes wrong for the block of `happening`, and the alerts that it must raise."""

    words: str
    alerts: frozenset[str]
    happening: Callable[[AlertStage], AbstractAsyncContextManager[None]]
    missing: str = ""
    """Why it cannot be provoked on this machine; empty if it can."""


# Processes ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _edges_killed(stage: AlertStage) -> AsyncIterator[None]:
    """Kill all edges."""
    await asyncio.gather(*(edge.kill() for edge in stage.world.edges))
    try:
        yield
    finally:
        await asyncio.gather(*(edge.start() for edge in stage.world.edges))


@asynccontextmanager
async def _monitors_killed(stage: AlertStage) -> AsyncIterator[None]:
    """Kill all monitors."""
    await asyncio.gather(*(monitor.kill() for monitor in stage.world.monitors))
    try:
        yield
    finally:
        await asyncio.gather(*(monitor.start() for monitor in stage.world.monitors))


@asynccontextmanager
async def _workers_killed(stage: AlertStage) -> AsyncIterator[None]:
    """Kill a worker of an edge five times; the edge serves on between two deaths."""
    first_process = stage.world.edges[1].pid

    async def kill() -> None:
        for _ in range(5):
            while not (workers := [pid for pid in descendants(first_process) if _runs(pid, b"edge.process.worker")]):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
            os.kill(workers[0], signal.SIGKILL)
            await asyncio.sleep(2)

    async with beside(kill()):
        yield


def _runs(pid: int, module: bytes) -> bool:
    """Return whether the process runs that module."""
    with contextlib.suppress(OSError):
        return module in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@asynccontextmanager
async def _key_replaced(stage: AlertStage) -> AsyncIterator[None]:
    """Replace the second edge's master key by one that opens no certificate."""
    key = stage.world.directory / "edge.key"
    shutil.copyfile(stage.world.directory / "master.key", key)
    async with another_edge(stage, FRONTAGE_MASTER_KEY_FILE=str(key)) as edge:
        write_key_file(key, [new_master_key()])
        os.kill(edge.pid, signal.SIGHUP)

        async def visit() -> None:
            context = ssl.create_default_context()
            host, port = edge.settings.edge_https
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=SECURED[0])
            writer.close()

        async with beside(repeat(visit)):
            yield


@asynccontextmanager
async def _disk_of_edge_full(stage: AlertStage) -> AsyncIterator[None]:
    """Stop the second edge's supervisor from writing files beyond 16 KB, as a full disk does, and add a domain.

    Its log is short, since it is a file, too.
    """
    async with another_edge(stage, FRONTAGE_LOG_LEVEL="error") as edge:
        supervisor = next(pid for pid in descendants(edge.pid) if _runs(pid, b"edge.supervisor_main"))
        no_limit = resource.RLIM_INFINITY
        resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (16_384, no_limit))
        await stage.world.partner.power(f"full.{DOWN}")
        try:
            yield
        finally:
            resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (no_limit, no_limit))


@asynccontextmanager
async def _state_copied(stage: AlertStage) -> AsyncIterator[None]:
    """Run two edges with the same state directory's contents, and so the same node id."""
    edge, copied = stage.world.edges[0], stage.world.directory / "copied"
    await edge.stop()
    shutil.copytree(edge.settings.state_dir, copied)
    names = ("EDGE_HTTP", "EDGE_HTTPS", "EDGE_ADMIN")
    ports = {f"FRONTAGE_{name}": f"127.0.0.1:{port}" for name, port in zip(names, free_ports(3), strict=True)}
    other = edge.with_variables(FRONTAGE_STATE_DIR=str(copied), **ports)
    await asyncio.gather(edge.start(), other.start())
    try:
        yield
    finally:
        await other.stop()
        shutil.rmtree(copied)


@asynccontextmanager
async def _connections_refused(stage: AlertStage) -> AsyncIterator[None]:
    """Open more connections to an edge than it allows one address."""
    async with another_edge(stage, FRONTAGE_EDGE_MAX_CONNECTIONS_PER_ADDRESS="1", FRONTAGE_EDGE_WORKERS="1") as edge:
        host, port = edge.settings.edge_http
        _, held = await asyncio.open_connection(host, port)

        async def visit() -> None:
            _, writer = await asyncio.open_connection(host, port)
            writer.close()

        async with beside(repeat(visit)):
            yield
        held.close()


@asynccontextmanager
async def _upgrade_failed(stage: AlertStage) -> AsyncIterator[None]:
    """Start an upgrade whose new version finds no master key; the old one has read it."""
    key, away = stage.world.directory / "master.key", stage.world.directory / "away.key"
    key.rename(away)
    os.kill(stage.world.edges[0].pid, signal.SIGUSR2)
    try:
        yield
    finally:
        away.rename(key)
        os.kill(stage.world.edges[0].pid, signal.SIGUSR2)


@asynccontextmanager
async def _api_frozen(stage: AlertStage) -> AsyncIterator[None]:
    """Stop the API's process for three seconds."""
    os.kill(stage.world.api.pid, signal.SIGSTOP)
    await asyncio.sleep(3)
    os.kill(stage.world.api.pid, signal.SIGCONT)
    yield


# Postgres -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _postgres_stopped(stage: AlertStage) -> AsyncIterator[None]:
    """Kill Postgres while requests go on."""
    postgres = stage.world.postgres
    postgres.process.kill()
    await asyncio.to_thread(postgres.process.wait)
    try:
        async with beside(repeat(lambda: stage.world.partner.ask("GET", "/power"))):
            yield
    finally:
        postgres.launch()


@asynccontextmanager
async def _table_locked(stage: AlertStage) -> AsyncIterator[None]:
    """Lock a table that the API's requests wait for."""
    async with stage.world.database.transaction() as connection:
        await connection.execute("lock table domains in access exclusive mode")
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(60):
                await stack.enter_async_context(beside(repeat(lambda: stage.world.partner.ask("GET", "/power"))))
            yield


@asynccontextmanager
async def _routes_forgotten(stage: AlertStage) -> AsyncIterator[None]:
    """Take the database back to a while ago, as after the restore of a backup: a tenth of the routes is missing."""
    async with stage.world.database.transaction() as connection:
        await connection.execute("set local session_replication_role = replica")
        routes = await connection.fetch(
            "delete from domains where domain in (select domain from domains where product = 'secure' limit 2)"
            " returning product || '/' || domain as key"
        )
        forgotten = await connection.fetch(
            "delete from changes where kind = 'route' and key = any($1) returning shard", [row["key"] for row in routes]
        )
        await connection.execute(
            "update feed_shards set version = version - (select count(*) from unnest($1::smallint[]) each"
            " where each = shard), checksum ="
            " (select coalesce(bit_xor(digest), 0) from changes where changes.shard = feed_shards.shard)",
            [row["shard"] for row in forgotten],
        )
    try:
        yield
    finally:
        async with aiohttp.ClientSession() as session:
            for edge in stage.world.edges:
                async with session.post(f"http://{edge.settings.edge_admin}/replica/accept"):
                    pass


@asynccontextmanager
async def _checks_refused(stage: AlertStage) -> AsyncIterator[None]:
    """Have Postgres refuse to claim checks, which have been due for ten minutes."""
    async with stage.world.database.transaction() as connection:
        await connection.execute("update checks set due_at = now() - interval '10 minutes'")
        await connection.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$"
        )
        await connection.execute("create trigger refuse before update on checks for each row execute function refuse()")
    try:
        yield
    finally:
        async with stage.world.database.transaction() as connection:
            await connection.execute("drop trigger refuse on checks")
            await connection.execute("drop function refuse")


# Certificates ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def _ca_refuses(stage: AlertStage) -> AsyncIterator[None]:
    """Have the CA refuse orders while certificates that end tomorrow are due, as after weeks of refusals."""
    world = stage.world
    world.ca.fail("new order", times=1_000_000, status=403, problem="unauthorized")
    async with world.database.transaction() as connection:
        await connection.execute(
            "update certificates set not_before = now() - interval '89 days', not_after = now() + interval '1 day'"
            " where domain = any($1::text[])",
            SECURED,
        )
    await _renew(stage)
    try:
        yield
    finally:
        world.ca.faults.clear()
        await _renew(stage)


async def _renew(stage: AlertStage) -> None:
    """Make the orders of all secured domains due."""
    async with stage.world.database.transaction() as connection:
        for domain in SECURED:
            await connection.execute("update orders set due_at = now() where domain = $1", domain)


@asynccontextmanager
async def _orders_limited(stage: AlertStage) -> AsyncIterator[None]:
    """Restart the monitor with a limit that the orders of today have used up."""
    async with another_monitor(stage, FRONTAGE_ACME_ORDERS_PER_ACCOUNT="12"):
        yield


# The world outside ----------------------------------------------------------------------------------------


@asynccontextmanager
async def _receivers_fail(stage: AlertStage) -> AsyncIterator[None]:
    """Have the webhook sink answer 500."""
    stage.sink.answer_with(500)
    for partner in stage.partners:
        await partner.ask("POST", "/webhooks/test")
    try:
        yield
    finally:
        stage.sink.answer_with(204)
        async with stage.world.database.transaction() as connection:
            await connection.execute("update webhook_endpoints set due_at = now() where failing_since is not null")


@asynccontextmanager
async def _name_servers_silent(stage: AlertStage) -> AsyncIterator[None]:
    """Have the zone's server not answer for the monitored domains."""
    for domain in WATCHED:
        stage.world.zone.misbehave(domain, Behaviour.TIMEOUT)
    try:
        yield
    finally:
        for domain in WATCHED:
            stage.world.zone.misbehave(domain, None)


@asynccontextmanager
async def _records_lost(stage: AlertStage) -> AsyncIterator[None]:
    """Remove the records of the monitored domains."""
    for domain in WATCHED:
        stage.world.zone.remove(domain)
    try:
        yield
    finally:
        for domain in WATCHED:
            stage.world.zone.add(domain, "A", ADDRESS)


@asynccontextmanager
async def _origin_down(stage: AlertStage) -> AsyncIterator[None]:
    """Visit a domain whose origin does not listen."""
    url = f"http://{stage.world.edges[1].settings.edge_http}/"

    async def visit() -> None:
        async with aiohttp.ClientSession() as session, session.get(url, headers={"Host": DOWN}, allow_redirects=False):
            await asyncio.sleep(POLL_SECONDS)

    async with beside(repeat(visit)):
        yield


# Machines -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _disk_full(stage: AlertStage) -> AsyncIterator[None]:
    """Put the API's state directory on a small disk."""
    directory = stage.world.api.settings.state_dir
    await run("mount", "-t", "tmpfs", "-o", "size=900M", "none", str(directory))
    try:
        yield
    finally:
        await run("umount", str(directory))


@asynccontextmanager
async def _clock_wrong(stage: AlertStage) -> AsyncIterator[None]:
    """Run the monitor with a clock that is ten seconds fast."""
    async with another_monitor(stage, LD_PRELOAD=str(_FAKETIME), FAKETIME="+10s", FAKETIME_DONT_FAKE_MONOTONIC="1"):
        yield


def list_causes() -> list[Cause]:
    """Return all causes, in the order in which they are provoked."""
    return [
        Cause(
            "edges killed",
            frozenset({"FrontageNoEdgeServes", "FrontageEdgeLost", "FrontageTargetDown"}),
            _edges_killed,
        ),
        Cause(
            "an edge starts its workers with another master key",
            frozenset({"FrontageEdgeUnusable", "FrontageCertificatesUnusable"}),
            _key_replaced,
        ),
        Cause("an edge may write no file", frozenset({"FrontageEdgeStuck"}), _disk_of_edge_full),
        Cause("an edge's state directory is copied", frozenset({"FrontageEdgeIdShared"}), _state_copied),
        Cause("a client opens too many connections", frozenset({"FrontageConnectionsRefused"}), _connections_refused),
        Cause("workers of an edge killed", frozenset({"FrontageWorkersDie"}), _workers_killed),
        Cause("SIGUSR2 without a master key", frozenset({"FrontageUpgradeFailed"}), _upgrade_failed),
        Cause("monitors killed", frozenset({"FrontageNoMonitor", "FrontageTargetDown"}), _monitors_killed),
        Cause("API stopped for 3 s (SIGSTOP)", frozenset({"FrontageLoopLags"}), _api_frozen),
        Cause(
            "Postgres killed",
            frozenset({"FrontageDatabaseAway", "FrontageMonitorLeaseLost", "FrontageReplicaLags", "FrontageApiErrors"}),
            _postgres_stopped,
        ),
        Cause("a table locked", frozenset({"FrontagePoolExhausted"}), _table_locked),
        Cause(
            "Postgres refuses claims of checks",
            frozenset({"FrontageWorkStopped", "FrontageWorkOverdue", "FrontageChecksUnhealthy"}),
            _checks_refused,
        ),
        Cause("the CA refuses renewals", frozenset({"FrontageOrdersFail", "FrontageCertificatesEnd"}), _ca_refuses),
        Cause("the CA's limit is used up", frozenset({"FrontageCaLimitShort"}), _orders_limited),
        Cause("receivers answer 500", frozenset({"FrontageDeliveriesFail"}), _receivers_fail),
        Cause("records vanish", frozenset({"FrontageAlarmsHeld", "FrontageChecksUnhealthy"}), _records_lost),
        Cause("name servers are silent", frozenset({"FrontageChecksUnhealthy"}), _name_servers_silent),
        Cause("an origin is down", frozenset({"FrontageOriginErrors", "FrontageOriginsUnreachable"}), _origin_down),
        Cause(
            "a disk of 900 MB",
            frozenset({"FrontageDiskFull"}),
            _disk_full,
            "" if os.geteuid() == 0 else "needs root, to mount a tmpfs",
        ),
        Cause(
            "a clock 10 s fast",
            frozenset({"FrontageClockWrong"}),
            _clock_wrong,
            "" if _FAKETIME.exists() else "needs Debian's faketime",
        ),
        Cause("the database forgets routes", frozenset({"FrontageHeldCopy"}), _routes_forgotten),
    ]
