"""An origin that edges cannot reach: reported once for all of its domains, and once more when it answers again."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_network
from typing import Any

import pytest

from bench.lab.ports import free_ports
from common.addresses import AddressPolicy
from common.db import domains, edge_nodes, events, origin_outages
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.origin_faults import FailingOrigin, OriginIdentity
from common.origin_probe import OriginProbe
from monitor.origin_watch import OriginWatch
from tests.integration.api.secured import serve_origin
from tests.integration.common.test_application_rows import create, new


class Installation:
    def __init__(self, database: Database, port: int) -> None:
        self.database = database
        self.origin = f"http://127.0.0.1:{port}"
        self.identity = OriginIdentity("http", "127.0.0.1", port, "127.0.0.1", verify=True)
        self.watch = OriginWatch(database, OriginProbe(AddressPolicy([ip_network("127.0.0.0/8")], []), ()))

    async def enrol(self, application_id: str, *names: str, path: str = "/shop") -> None:
        async with self.database.transaction() as connection:
            for name in names:
                await domains.power(connection, name, application_id, DomainSettings(f"{self.origin}{path}"))

    async def fail(self, *, is_failing: bool = True) -> None:
        failing = [FailingOrigin(self.identity, "refused")] if is_failing else []
        async with self.database.transaction() as connection:
            await edge_nodes.report(connection, "edge-1", "feed", 1, failing=failing)

    async def pass_seconds(self, seconds: float) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(
                "update origin_outages set since = since - make_interval(secs => $1),"
                " seen_at = seen_at - make_interval(secs => $1)",
                seconds,
            )
            await connection.execute("update events set created_at = created_at - make_interval(secs => $1)", seconds)

    async def outage(self) -> None:
        """Have it reported; no edge reports it any more."""
        await self.fail()
        await self.watch.check_once()
        await self.pass_seconds(origin_outages.REPORT_SECONDS + 1)
        await self.watch.check_once()
        assert await self.reported()
        await self.fail(is_failing=False)

    async def outage_of_edges(self) -> None:
        """Have it reported though the origin answers monitors; no edge reports it any more."""
        await self.fail()
        await self.watch.check_once()
        await self.pass_seconds(origin_outages.ALONE_SECONDS + 1)
        await self.watch.check_once()
        await self.fail(is_failing=False)

    async def reported(self) -> list[origin_outages.OriginOutage]:
        async with self.database.connection() as connection:
            return await origin_outages.list_reported(connection, ["one"], most=5)

    async def seconds_since(self, at: datetime) -> float:
        async with self.database.connection() as connection:
            seconds: float = await connection.fetchval("select extract(epoch from now() - $1::timestamptz)::float8", at)
        return seconds

    async def events(self, application_id: str = "one") -> list[tuple[str, Any]]:
        async with self.database.connection() as connection:
            listed = await events.list_events(connection, application_id, before=None, limit=100)
        return [(each.type, each.fields["domains"]) for each in reversed(listed)]


@pytest.fixture
async def installation(database: Database) -> Installation:
    [port] = free_ports(1)
    await create(database, new("one"))
    await create(database, new("two"))
    return Installation(database, port)


FAILING, RECOVERED = "domain.origin_failing", "domain.origin_recovered"


async def test_an_outage_is_reported_once_with_the_number_of_its_domains(installation: Installation) -> None:
    await installation.enrol("one", "a.test", "b.test", "c.test")
    await installation.enrol("two", "d.test", path="")
    await installation.enrol("two", "elsewhere.test", path="0/other")  # of another port
    await installation.fail()
    await installation.watch.check_once()
    assert await installation.events() == [], "not yet"
    await installation.pass_seconds(origin_outages.REPORT_SECONDS + 1)
    for _ in range(3):
        await installation.watch.check_once()
    assert await installation.events() == [(FAILING, 3)]
    assert await installation.events("two") == [(FAILING, 1)]
    async with installation.database.connection() as connection:
        [outage] = await origin_outages.list_reported(connection, ["one"], most=5)
        failing = await origin_outages.find_failing(connection, [("one", "a.test"), ("two", "elsewhere.test")])
    assert (outage.origin, outage.fault, outage.example) == (installation.origin, "refused", "a.test")
    assert failing == {("one", "a.test")}


async def test_its_end_is_reported_when_the_origin_answers_a_monitor(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    await installation.fail()
    await installation.watch.check_once()
    await installation.pass_seconds(origin_outages.REPORT_SECONDS + 1)
    await installation.watch.check_once()
    await installation.fail(is_failing=False)  # nobody has asked it since
    await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
    await installation.watch.check_once()
    assert await installation.events() == [(FAILING, 1)], "it still refuses connections"
    await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
    async with serve_origin(port=installation.identity.port):
        await installation.watch.check_once()
        await installation.watch.check_once()
    assert await installation.events() == [(FAILING, 1), (RECOVERED, 1)]


async def test_an_origin_that_answers_again_is_shown_as_such_within_seconds(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    await installation.outage()
    async with serve_origin(port=installation.identity.port):
        await installation.watch.check_once()
        assert await installation.reported(), "an edge has reported it this second"
        await installation.pass_seconds(13)
        await installation.watch.check_once()
        assert await installation.reported() == []
    assert await installation.events() == [(FAILING, 1), (RECOVERED, 1)]


async def test_an_origin_that_fails_again_soon_has_to_be_quiet_for_longer(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    async with serve_origin(port=installation.identity.port):
        await installation.outage_of_edges()
        await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
        await installation.watch.check_once()
        await installation.pass_seconds(60)
        await installation.outage_of_edges()
        for _ in range(3):
            await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
            await installation.watch.check_once()
        assert await installation.events() == [(FAILING, 1), (RECOVERED, 1), (FAILING, 1)]
        await installation.pass_seconds(origin_outages.UNSTEADY_OVER_SECONDS)
        await installation.watch.check_once()
        assert (await installation.events())[3:] == [(RECOVERED, 1)]
        await installation.pass_seconds(origin_outages.RELAPSE_SECONDS + 1)
        await installation.outage_of_edges()
        await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
        await installation.watch.check_once()
    assert (await installation.events())[4:] == [(FAILING, 1), (RECOVERED, 1)], "ten minutes later it is as at first"


async def test_without_visitors_it_is_known_when_it_was_last_seen_to_fail(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    await installation.outage()
    await installation.pass_seconds(300)  # monitors did not run
    [outage] = await installation.reported()
    assert 300 <= await installation.seconds_since(outage.seen_at) < 310
    await installation.watch.check_once()  # no edge reports it: the monitor asks by itself
    [outage] = await installation.reported()
    assert await installation.seconds_since(outage.seen_at) < 10
    assert outage.lasted_seconds > 300


async def test_an_origin_that_fails_for_seconds_again_and_again_is_reported(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    for _ in range(6):
        await installation.fail()
        await installation.watch.check_once()
        await installation.pass_seconds(15)
        await installation.fail(is_failing=False)
        async with serve_origin(port=installation.identity.port):
            await installation.watch.check_once()
            await installation.pass_seconds(18)
            await installation.watch.check_once()
    assert await installation.events() == [(FAILING, 1), (RECOVERED, 1), (FAILING, 1)]


async def test_one_failure_of_an_origin_that_answers_is_no_outage(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    async with serve_origin(port=installation.identity.port):
        await installation.fail()
        await installation.watch.check_once()
        await installation.pass_seconds(origin_outages.REPORT_SECONDS + 1)
        await installation.watch.check_once()
        await installation.fail(is_failing=False)
        await installation.pass_seconds(origin_outages.UNSTEADY_OVER_SECONDS + 1)
        await installation.watch.check_once()
    assert await installation.events() == []
    async with installation.database.connection() as connection:
        assert await connection.fetchval("select count(*) from origin_outages") == 0


async def test_an_origin_that_edges_alone_cannot_reach_is_reported_later(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    async with serve_origin(port=installation.identity.port):
        await installation.fail()
        await installation.watch.check_once()
        async with installation.database.transaction() as connection:
            await connection.execute("update origin_outages set since = since - interval '91 seconds'")
        await installation.watch.check_once()
    assert await installation.events() == [(FAILING, 1)]
