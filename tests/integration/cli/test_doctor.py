"""`frontage doctor` against real parts: a database, leases, a name server, an edge's probe, a disk, clocks."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dns.message
import pytest
from aiohttp import web

from api.cli.doctor import clock, machine, names, nodes
from api.cli.doctor.database import check_keys, check_sessions, check_space, check_work, judge_sessions
from api.cli.doctor.findings import Finding, FindingState
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from common.clock import SystemClock
from common.db import edge_nodes, feed, monitor_nodes
from common.db.edge_nodes import Condition, EdgeDescription, FailedUpgrade
from common.db.health import SessionUse
from common.db.pool import Database
from common.db.secrets_canary import ensure_canary
from common.probe import PROBE_PATH, probe_answer
from common.secrets import Keyring, create_key_file, load_keyring, read_key_file
from common.settings import Settings, load
from tests import rows
from tests.integration.cli.frontage import environment, run

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def settings_of(state_dir: Path, **more: str) -> Settings:
    return load({"FRONTAGE_STATE_DIR": str(state_dir)} | {f"FRONTAGE_{name}": value for name, value in more.items()})


def found(findings: list[Finding], subject: str) -> Finding:
    return next(finding for finding in findings if finding.subject == subject)


@pytest.mark.parametrize(
    ("used", "states"),
    [
        ({"frontage api": 10}, ["ok"]),
        ({"frontage edge": 40, "frontage edge lease": 41}, ["broken"]),
        ({"frontage edge": 51}, ["note"]),
        ({"frontage edge": 51, "frontage edge lease": 46}, ["broken", "note"]),
    ],
)
def test_sessions_that_are_nearly_used_up_are_named(used: dict[str, int], states: list[str]) -> None:
    findings = judge_sessions(SessionUse(100, used))
    assert [each.state.value for each in findings] == states
    assert all(name in findings[0].seen for name in used) or states == ["note"]


async def test_sessions_are_counted_by_application(database: Database) -> None:
    [finding] = await check_sessions(database)
    assert " of tests" in finding.seen or " of frontage" in finding.seen


# Output --------------------------------------------------------------------------------------------------


def test_piped_output_is_one_line_a_finding_and_json_is_data(dsn: str, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn, DNS_SERVERS="127.0.0.1:9")
    piped = run("doctor", env=env)
    lines = piped.stdout.splitlines()
    assert piped.returncode == 1
    assert all(line.startswith(("ok: ", "note: ", "broken: ")) for line in lines)
    assert max(map(len, lines)) > 100, "none is wrapped"

    as_json = run("doctor", "--json", env=env)
    content = json.loads(as_json.stdout)
    assert (as_json.returncode, content["ok"]) == (1, False)
    assert len(content["findings"]) == len(lines)
    assert all(each["remedy"] for each in content["findings"] if each["state"] != "ok")


# The machine ---------------------------------------------------------------------------------------------


async def test_a_lost_key_file_is_told_from_one_that_was_never_made(database: Database, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert (await check_keys(settings, database)).state is FindingState.NOTE

    keyring = load_keyring(settings.key_file, create=True)
    async with database.transaction() as connection:
        await ensure_canary(connection, keyring)
    assert (await check_keys(settings, database)).state is FindingState.OK

    settings.key_file.unlink()
    lost = await check_keys(settings, database)
    assert (lost.state, lost.remedy.startswith("restore it from your backup")) == (FindingState.BROKEN, True)
    assert "migrate" not in lost.text

    load_keyring(settings.key_file, create=True)
    other = await check_keys(settings, database)
    assert (other.state, "does not belong to this database" in other.text) == (FindingState.BROKEN, True)


async def test_the_key_file_of_an_edge_is_judged_as_one(database: Database, tmp_path: Path) -> None:
    whole, other = tmp_path / "whole.key", tmp_path / "other.key"
    keyring = load_keyring(whole, create=True)
    async with database.transaction() as connection:
        await ensure_canary(connection, keyring)
    load_keyring(other, create=True)
    settings = settings_of(tmp_path)
    for source, state in ((whole, FindingState.OK), (other, FindingState.BROKEN)):
        settings.key_file.unlink(missing_ok=True)
        create_key_file(settings.key_file, [key.of_edge() for key in read_key_file(source)])
        finding = await check_keys(settings, database)
        assert (finding.state, "`frontage master-key export --role edge FILE`" in finding.remedy) == (
            state,
            state is FindingState.BROKEN,
        )


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte with no room left."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        with pytest.raises(OSError, match="No space left"):
            (place / "filling").write_bytes(b"x" * 2**21)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_broken(full_disk: Path) -> None:
    finding = machine.check_disk(full_disk / "not" / "made", "disk")
    assert (finding.state, "0 MiB free" in finding.seen) == (FindingState.BROKEN, True)


def test_disks_are_judged_by_what_is_free(tmp_path: Path) -> None:
    states = [
        machine.judge_space("disk", tmp_path, free << 20, inodes).state
        for free, inodes in ((50, 9), (500, 9), (5000, 9), (5000, 0), (5000, None))
    ]
    assert states == [FindingState.BROKEN, FindingState.NOTE, FindingState.OK, FindingState.BROKEN, FindingState.OK]


def test_a_tenth_of_a_small_disk_is_little(tmp_path: Path) -> None:
    free = 2 * 1024**3
    for size, state in ((15 * 1024**3, FindingState.OK), (30 * 1024**3, FindingState.NOTE)):
        assert machine.judge_space("disk", tmp_path, free, None, size_bytes=size).state is state
    assert machine.judge_space("disk", tmp_path, 11 * 1024**3, None, size_bytes=1024**4).state is FindingState.OK


async def test_overdue_work_is_no_ok(database: Database, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert [each.state for each in await check_work(settings, database)] == [FindingState.OK]
    async with database.transaction() as connection:
        await rows.add_application(connection, "a")
        await connection.execute(
            "insert into orders (domain, application_id, state, hold_until, due_at)"
            " values ('shop.example', 'a', 'running', now(), now() - interval '10 minutes')"
        )
    [overdue] = await check_work(settings, database)
    assert (overdue.subject, overdue.state) == ("work", FindingState.NOTE)
    assert "Overdue certificate orders: 1, the first for 10 minutes" in overdue.seen


async def test_a_locked_table_hides_only_what_is_in_it(dsn: str, tmp_path: Path, database: Database) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn, DNS_SERVERS="127.0.0.1:9")
    async with database.transaction() as connection:
        await connection.execute("lock table orders in access exclusive mode")
        examined = await asyncio.to_thread(run, "doctor", "--json", env=env)

    findings = {each["subject"]: each for each in json.loads(examined.stdout)["findings"]}
    assert findings["database"]["state"] == "ok"
    assert findings["monitors"]["state"] != "ok"
    assert (findings["work"]["state"], findings["work"]["remedy"]) == ("broken", "see Postgres' log for the reason")
    assert findings["work"]["seen"] == "the database gave up: canceling statement due to lock timeout"


async def test_a_database_that_can_write_is_well(database: Database) -> None:
    assert [finding.text for finding in await check_space(database) if finding.state is FindingState.BROKEN] == []


# Clocks --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OffClock:
    """Shows another time than it is."""

    off: timedelta

    def now(self) -> datetime:
        return datetime.now(UTC) + self.off

    def monotonic(self) -> float:
        return SystemClock().monotonic()


@pytest.mark.parametrize(("days", "words"), [(2, "2.0 days ahead of Postgres"), (-2, "2.0 days behind Postgres")])
async def test_a_clock_two_days_off_is_broken(database: Database, days: int, words: str) -> None:
    evidence = await clock.ask_database(database)
    assert clock.check_clock(SystemClock(), evidence).state is FindingState.OK
    finding = clock.check_clock(OffClock(timedelta(days=days)), evidence)
    assert (finding.state, finding.seen) == (FindingState.BROKEN, words)
    assert "NTP" in finding.remedy


async def test_a_clock_behind_the_latest_record_is_broken(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "insert into enrolments (application_id, domain, product, enrolled_at)"
            " values ('app', 'a.test', 'power', now() + interval '2 days')"
        )
    finding = clock.check_clock(SystemClock(), await clock.ask_database(database))
    assert (finding.state, "behind the latest record" in finding.seen) == (FindingState.BROKEN, True)


@pytest.mark.parametrize(
    ("off", "state"),
    [
        (timedelta(hours=1), FindingState.OK),
        (timedelta(days=2), FindingState.BROKEN),
        (timedelta(days=-2), FindingState.BROKEN),
    ],
)
def test_the_signature_of_the_root_tells_the_day(off: timedelta, state: FindingState) -> None:
    signed = NOW - timedelta(hours=20)
    expires = signed + timedelta(days=13)
    answer = dns.message.from_text(
        "id 1\nopcode QUERY\nrcode NOERROR\nflags QR RD RA\n;QUESTION\n. IN SOA\n;ANSWER\n"
        ". 86400 IN SOA a.root-servers.net. nstld.verisign-grs.com. 2026112200 1800 900 604800 86400\n"
        f". 86400 IN RRSIG SOA 8 0 86400 {expires:%Y%m%d%H%M%S} {signed:%Y%m%d%H%M%S} 20326 . AAAA\n"
    )
    evidence = clock.read_root_signature(answer)
    assert evidence is not None
    assert clock.judge_clock(NOW + off, [evidence]).state is state


# Targets -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(keyring: Keyring | None) -> AsyncIterator[int]:
    """An edge with that master key, or another server; its port."""

    async def answer(request: web.Request) -> web.Response:
        nonce = request.path.removeprefix(PROBE_PATH)
        body = None if keyring is None else probe_answer(keyring, request.host.partition(":")[0], nonce)
        return web.Response(body=body or b"hello")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_targets_have_to_lead_to_an_edge_of_this_installation(tmp_path: Path) -> None:
    keyring = load_keyring(tmp_path / "master.key", create=True)
    zone = Zone()
    zone.add("power.frontage.test", "A", "127.0.0.1")
    zone.add("power.frontage.test", "AAAA", "::1")
    async with NameServer.serve(zone) as server, answering(keyring) as edge, answering(None) as another:
        targets = {"POWER_TARGET": "power.frontage.test", "SSL_TARGET": "ssl.frontage.test"}
        settings = settings_of(tmp_path, DNS_SERVERS=server.address, EDGE_HTTP=f"127.0.0.1:{edge}", **targets)
        power, ssl = await names.check_targets(settings)
        assert power.state is FindingState.OK
        assert (ssl.state, "ssl.frontage.test has no address" in ssl.seen) == (FindingState.BROKEN, True)

        elsewhere = settings_of(tmp_path, DNS_SERVERS=server.address, EDGE_HTTP=f"127.0.0.1:{another}", **targets)
        power, _ = await names.check_targets(elsewhere)
        assert (power.state, "and no edge of this installation" in power.seen) == (FindingState.BROKEN, True)


# Nodes ---------------------------------------------------------------------------------------------------


async def examine_nodes(opened: Database) -> list[Finding]:
    return await nodes.check_nodes(opened, SystemClock())


async def add_domain(opened: Database) -> None:
    async with opened.transaction() as connection:
        await rows.power(connection, "shop.test", "http://192.0.2.1/")


async def test_nothing_that_runs_is_noted_before_there_is_a_domain_and_broken_then(database: Database) -> None:
    before = await examine_nodes(database)
    assert {finding.state for finding in before} == {FindingState.NOTE}
    await add_domain(database)
    after = await examine_nodes(database)
    assert {finding.subject: finding.state for finding in after} == {
        "edges": FindingState.BROKEN,
        "monitors": FindingState.BROKEN,
    }
    assert found(after, "monitors").remedy == "start `frontage monitor`"


async def test_edges_and_monitors_are_judged_by_their_leases(database: Database) -> None:
    await add_domain(database)
    async with database.transaction() as connection:
        head = await feed.read_head(connection)
        await edge_nodes.report(connection, "0123456789", head.identity, head.version, host="edge-a")
        await monitor_nodes.report(connection, "monitor-a", "host-a", "internal aaaa", ())
    assert {finding.state for finding in await examine_nodes(database)} == {FindingState.OK}

    async with database.transaction() as connection:
        condition = Condition("stuck", "cannot write the replica: free space on that disk")
        await edge_nodes.report(connection, "0123456789", head.identity, head.version, condition, host="edge-a")
        await edge_nodes.report(connection, "9876543210", head.identity, head.version, host="edge-b")
        await connection.execute("update edge_nodes set lease_until = now() where host = 'edge-b'")
        await monitor_nodes.report(connection, "monitor-b", "host-b", "internal bbbb", ("batches",))
    findings = await examine_nodes(database)
    says = " | ".join(finding.text for finding in findings)
    assert "01234567 on edge-a: cannot write the replica: free space on that disk" in says
    assert "98765432 on edge-b left without ending its lease" in says
    assert "2 internal CAs" in says
    assert "monitor- on host-b has stopped work: batches" in says


async def test_an_upgrade_that_failed_on_another_machine_is_broken(database: Database) -> None:
    failure = FailedUpgrade(NOW, "ended with status 1")
    async with database.transaction() as connection:
        head = await feed.read_head(connection)
        description = EdgeDescription("1.0", None, failure)
        await edge_nodes.report(
            connection, "0123456789", head.identity, head.version, host="edge-a", description=description
        )
    failed = found(await examine_nodes(database), "edges")
    assert failed.state is FindingState.BROKEN
    assert failed.seen == (
        "01234567 on edge-a: its upgrade at 2026-11-22 12:00:00 UTC failed, and the version before serves on"
        " (ended with status 1)"
    )


def test_a_failed_upgrade_is_broken(tmp_path: Path) -> None:
    readiness = {
        "replica": {"age_seconds": 0.1, "held_copy": None, "state": "serving", "reason": None},
        "failed_upgrade": {"at": "2026-11-22T10:00:00Z", "reason": "a worker ended before it could accept"},
    }
    well, failed = nodes.judge_edge(settings_of(tmp_path), readiness)
    assert (well.state, failed.state) == (FindingState.OK, FindingState.BROKEN)
    assert "a worker ended" in failed.seen
