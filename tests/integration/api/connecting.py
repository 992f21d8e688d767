"""The world of a flow: the API and a monitor's steps over a real name server whose zones can be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import dns.asyncquery
import dns.message
import dns.rdatatype

from common.addresses import tenant_policy
from common.clock import SystemClock
from common.connect.settlement import Settlement
from common.connect.zone_inspector import ZoneInspector
from common.db.session import SessionTimeouts
from common.dns import Pass, Resolver
from common.dns.authority import Authority
from common.dns.shared_resolvers import SharedResolvers
from common.enrolment.delegations import Delegations
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.eligibility import ServiceTargets
from common.enrolment.enrolling import Enrolling
from common.enrolment.ownership import OwnNames
from common.host_ports import HostPort
from common.origin_probe import OriginProbe
from common.record_checks.record_checker import RecordChecker
from monitor.claims import Runner
from monitor.concurrency_shares import ConcurrencyShares
from monitor.connect.enrolment import FlowEnrolment
from monitor.connect.steps import FlowSteps, make_runner
from tests.integration.api.conftest import SERVER, Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.waiting import until

APEX = "customer.test"
PARENT: tuple[tuple[str, str, str], ...] = (
    ("test", "NS", "ns.test."),
    ("ns.test", "A", "127.0.0.1"),
    (APEX, "NS", f"ns.{APEX}."),
    (f"ns.{APEX}", "A", "127.0.0.1"),
    ("*.partner.test", "CNAME", "power.frontage.test."),
    ("power.frontage.test", "A", SERVER),
)
CUSTOMER: tuple[tuple[str, str, str], ...] = (
    (APEX, "NS", f"ns.{APEX}."),
    (f"ns.{APEX}", "A", "127.0.0.1"),
    (APEX, "MX", f"10 mail.{APEX}."),
    (APEX, "TXT", '"v=spf1 include:mail.test -all"'),
    (f"shop.{APEX}", "A", "192.0.2.1"),
)
KEY = {"key_name": "writer", "key_secret": "c2VjcmV0LW9mLXRoZS1sYWItc2VjcmV0LW9mLXRoZS1sYWI="}
SHOWN = "https://app.example.com/shop"
CNAME = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "applicationUrl": SHOWN}
CONFIG: dict[str, Any] = {
    "power": True,
    "monitor": True,
    "userId": "user-7",
    "dnsRecords": [CNAME],
}


def zone_file(records: tuple[tuple[str, str, str], ...]) -> str:
    return "".join(f"{name}. {kind} {value}\n" for name, kind, value in records)


@dataclass(slots=True)
class World:
    service: Service
    name_server: HostPort
    partner: Partner
    runner: Runner[Any]

    @property
    def key(self) -> dict[str, str]:
        """What a person pastes to have the zone written by RFC 2136."""
        return KEY | {"server": str(self.name_server)}

    async def begin(self, host: str = f"shop.{APEX}", **config: Any) -> Flow:
        answer = await self.partner.call("POST", "/connect/flows", json=CONFIG | config | {"domain": host})
        assert answer.status == 201, answer.body
        return Flow(self, answer.body)

    async def planned(self, host: str = f"shop.{APEX}", **config: Any) -> Flow:
        flow = await self.begin(host, **config)
        await flow.until_planned()
        return flow

    async def values(self, name: str, kind: str) -> list[str]:
        """As the zone has them."""
        query = dns.message.make_query(name, kind)
        reply = await dns.asyncquery.udp(query, self.name_server.host, port=self.name_server.port, timeout=5)
        of_type = dns.rdatatype.from_text(kind)
        return sorted(
            rdata.to_text()
            for rrset in reply.answer
            for rdata in rrset
            if rrset.name.to_text() == f"{name}." and rrset.rdtype == of_type
        )

    async def look_again(self, flow: Flow) -> None:
        """Ask for a look at the flow's records until they have been looked for three times."""

        async def has_looked() -> bool:
            shown = await flow.read()
            if shown["state"] in ("waiting", "propagating"):
                await flow.act("check")
            return bool(shown["state"] == "finished" or (shown["propagation"] or {}).get("looks", 0) >= 3)

        await until(has_looked, "three looks")

    async def events(self) -> list[dict[str, Any]]:
        """The payloads, oldest first."""
        answer = await self.partner.call("GET", "/webhooks/events")
        return [each.get("payload", each) for each in reversed(answer.body["events"])]


@dataclass(slots=True)
class Flow:
    """One, as a browser follows it."""

    world: World
    body: dict[str, Any]

    @property
    def digest(self) -> str:
        digest: str = self.body["plan"]["digest"]
        return digest

    @property
    def changes(self) -> list[tuple[str, str, str, list[str], list[str]]]:
        return [
            (each["action"], each["host"], each["type"], each["before"], each["after"])
            for each in self.body["plan"]["changes"]
        ]

    async def read(self) -> dict[str, Any]:
        self.body = (await self.world.partner.call("GET", f"/connect/flows/{self.body['id']}")).body
        return self.body

    async def until(self, *states: str) -> dict[str, Any]:
        async def is_there() -> bool:
            return (await self.read())["state"] in states

        await until(is_there, f"a flow that is {states}")
        return self.body

    async def until_planned(self) -> dict[str, Any]:
        """Where the DNS did not answer in time, as on a busy machine, the person tries again."""
        while (await self.until("planned", "unchecked"))["state"] == "unchecked":
            await self.act("plan")
        return self.body

    async def act(self, action: str, **body: Any) -> Answer:
        answer = await self.world.partner.call("POST", f"/connect/flows/{self.body['id']}/{action}", json=body)
        if answer.status == 200:
            self.body = answer.body
        return answer

    async def apply(self, way: str, **credentials: str) -> Answer:
        """Applying looks again: where the DNS did not answer in time, as on a busy machine, the person tries again."""
        while True:
            answer = await self.act("apply", way=way, digest=self.digest, credentials=credentials or None)
            if answer.status == 200 or answer.body["code"] not in ("zone_unknown", "timeout"):
                return answer
            await self.act("plan")
            await self.until_planned()


async def no_probe(_: Pass, __: str) -> bool:
    return False


@asynccontextmanager
async def open_world(
    dsn: str,
    state_dir: Path,
    probe_port: int,
    name_server: HostPort,
    *,
    poll_seconds: float = 0.1,
    **environ: Any,
) -> AsyncIterator[World]:
    """`name_server` has the zones `PARENT` and `CUSTOMER`, and stands in for the resolver too. `environ`: further
    settings, by their names without the prefix."""
    async with open_service(
        dsn,
        state_dir,
        probe_port,
        SessionTimeouts(),
        authority_port=name_server.port,
        DNS_SERVERS=str(name_server),
        **environ,
    ) as service:
        runner, resolvers = _runner(service, name_server, poll_seconds)
        running = asyncio.create_task(runner.run())
        try:
            yield World(service, name_server, await service.partner(), runner)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await resolvers.close()


def _runner(service: Service, name_server: HostPort, poll_seconds: float) -> tuple[Runner[Any], SharedResolvers]:
    settings, clock = service.settings, SystemClock()
    policy = tenant_policy(settings)
    resolver = Resolver(settings.dns_servers, policy, authority_port=name_server.port)
    resolvers = SharedResolvers(settings.dns_servers, policy)
    checker = RecordChecker(resolvers, Authority(policy, port=name_server.port), clock, interval_seconds=3600.0)
    delegations = Delegations(service.database, settings.acme_dns_zone)
    targets, own_names = ServiceTargets.of(settings), OwnNames.of(settings)
    claims = DomainClaims(service.database, resolver, targets, own_names, no_probe, delegations)
    enrolling = Enrolling(claims, policy, OriginProbe(policy, settings.dns_servers))
    steps = FlowSteps(
        service.database,
        clock,
        ZoneInspector(resolver, service.database, settings),
        Settlement(service.database, clock, tuple(map(str, settings.service_servers))),
        checker,
        FlowEnrolment(service.database, enrolling, settings.https_url),
        ConcurrencyShares(),
        settings.base_url,
    )
    return make_runner(service.database, steps, Random(1), poll_seconds=poll_seconds), resolvers
