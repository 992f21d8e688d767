"""Registration in the domain check: the lab's RDAP server, found by the file that a monitor fetches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from api.services.rdap_servers import RdapServers
from bench.lab.rdap import RdapServer
from common.addresses import tenant_policy
from common.clock import SystemClock
from common.db import rdap_bootstrap
from common.db.session import SessionTimeouts
from common.dns import Resolver
from monitor.rdap_bootstrap import BootstrapRefresh
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.waiting import until


class LaterClock(SystemClock):
    ahead_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_seconds


async def refresh(service: Service, source: str) -> None:
    """Run a monitor's refresh until the file is there."""
    settings = service.settings
    policy = tenant_policy(settings)
    work = BootstrapRefresh(service.database, Resolver(settings.dns_servers, policy), policy, source, fewest=1)
    running = asyncio.create_task(work.run())
    try:
        async with service.database.connection() as connection:
            await until(lambda: rdap_bootstrap.find(connection, source))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def check(partner: Partner, domain: str) -> Answer:
    return await partner.call("POST", "/checkdomain", json={"domain": domain})


async def test_the_registry_tells_whether_a_domain_has_expired(dsn: str, tmp_path: Path, probe_port: int) -> None:
    async def fail(_: web.Request) -> web.Response:
        return web.Response(status=500)

    async with RdapServer.serve("test") as rdap:
        source = f"{rdap.url}dns.json"
        async with open_service(dsn, tmp_path, probe_port, SessionTimeouts(), RDAP_BOOTSTRAP=source) as service:
            await refresh(service, source)
            partner = await service.partner()
            for name, fields in (("live", {}), ("old", {"expires_in_days": -1}), ("ending", {})):
                statuses: Any = ("pending delete",) if name == "ending" else ("active",)
                rdap.register(f"{name}.test", statuses=statuses, **fields)
                service.zone.add(f"{name}.test", "A", "192.0.2.1")
            rdap.register("held.test")  # registered, but not in the zone above

            shown = {
                name: (await check(partner, f"{name}.test")).body for name in ("live", "old", "ending", "held", "no")
            }
            assert {name: (body["registered"], body["expired"]) for name, body in shown.items()} == {
                "live": (True, False),
                "old": (True, True),
                "ending": (True, True),
                "held": (True, False),
                "no": (False, False),
            }

            rdap.answer_with(fail)
            service.zone.add("new.test", "A", "192.0.2.1")
            answer = await check(partner, "new.test")
            assert (answer.status, answer.body["code"]) == (400, "rdap_unavailable")
            assert (await check(partner, "live.test")).status == 200  # asked before


async def test_off_leaves_the_delegation_to_decide(dsn: str, tmp_path: Path, probe_port: int) -> None:
    async with open_service(dsn, tmp_path, probe_port, SessionTimeouts(), RDAP_BOOTSTRAP="off") as service:
        partner = await service.partner()
        service.zone.add("shop.com", "A", "192.0.2.1")

        answer = await check(partner, "shop.com")

        assert (answer.status, answer.body["registered"], answer.body["expired"]) == (200, True, False)


async def test_only_one_monitor_fetches_the_file_in_an_hour(service: Service) -> None:
    source = "http://127.0.0.1:9/dns.json"
    async with service.database.transaction() as connection:
        assert await rdap_bootstrap.claim(connection, source)
        assert not await rdap_bootstrap.claim(connection, source)
        await connection.execute("update rdap_bootstrap set attempted_at = now() - interval '61 minutes'")
        assert await rdap_bootstrap.claim(connection, source)
        await rdap_bootstrap.keep(connection, source, b"{}")
        await connection.execute("update rdap_bootstrap set attempted_at = now() - interval '61 minutes'")
        assert not await rdap_bootstrap.claim(connection, source)  # fresh
        await connection.execute("update rdap_bootstrap set fetched_at = now() - interval '25 hours'")
        assert await rdap_bootstrap.claim(connection, source)
        assert not await rdap_bootstrap.claim(connection, source)  # tried a moment ago


async def test_another_url_is_fetched_at_once_and_the_file_before_it_is_dropped(service: Service) -> None:
    before, after = "http://127.0.0.1:9/before.json", "http://127.0.0.1:9/after.json"
    async with service.database.transaction() as connection:
        assert await rdap_bootstrap.claim(connection, before)
        await rdap_bootstrap.keep(connection, before, b"{}")
        assert await rdap_bootstrap.claim(connection, after)
        assert not await rdap_bootstrap.claim(connection, after)
        assert [await rdap_bootstrap.find(connection, each) for each in (before, after)] == [None, None]


async def test_a_list_that_is_fetched_after_the_first_look_is_found_soon(service: Service) -> None:
    clock, source = LaterClock(), "http://127.0.0.1:9/dns.json"
    servers = RdapServers(service.database, source, clock)
    assert not (await servers.find()).servers
    async with service.database.transaction() as connection:
        await rdap_bootstrap.keep(connection, source, b'{"services": [[["test"], ["http://rdap.test"]]]}')
    clock.ahead_seconds = 10.0
    assert (await servers.find()).find("customer.test") == ("http://rdap.test/",)
