"""An origin that edges cannot reach: reported once for all of its domains, and once more when it answers again."""

from __future__ import annotations

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


async def test_one_failure_of_an_origin_that_answers_is_no_outage(installation: Installation) -> None:
    await installation.enrol("one", "a.test")
    async with serve_origin(port=installation.identity.port):
        await installation.fail()
        await installation.watch.check_once()
        await installation.pass_seconds(origin_outages.REPORT_SECONDS + 1)
        await installation.watch.check_once()
        await installation.fail(is_failing=False)
        await installation.pass_seconds(origin_outages.OVER_SECONDS + 1)
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
