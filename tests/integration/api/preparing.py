"""An API with a zone for delegated challenges, a monitor that follows the DNS, and calls that prepare domains."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from api.bounds import BOUNDS, Bounds
from common.addresses import tenant_policy
from common.db import preparations
from common.dns import Resolver
from common.enrolment.delegations import Delegations
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.eligibility import ServiceTargets
from common.enrolment.enrolling import Enrolling
from common.enrolment.ownership import OwnNames
from common.enrolment.preparing import Preparing
from common.origin_probe import OriginProbe
from monitor.certificates.dns_moved_away import DomainDnsCheck
from monitor.claims import Runner
from monitor.preparing import PreparationWork
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.connecting import no_probe
from tests.integration.api.partner import Answer, Partner
from tests.integration.monitor import parts
from tests.timeouts import UNHURRIED
from tests.waiting import until

SHOP = "shop.customer.test"
ORIGIN = "https://app.acme.example/shop"
WANTED = {"product": "power", "applicationUrl": ORIGIN, "powerRootPathAccess": ["/static"], "metadata": {"plan": "pro"}}
ZONE = "acme.frontage.test"


@asynccontextmanager
async def open_preparing(dsn: str, tmp_path: Path, probe_port: int, bounds: Bounds = BOUNDS) -> AsyncIterator[Service]:
    """Serve the API, with zones whose own servers can be asked, and a monitor beside it."""
    settings = {"PUBLIC_URL": "https://api.frontage.test", "ACME_DNS_ZONE": ZONE}
    async with (
        open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None, bounds=bounds, **settings) as service,
        AsyncExitStack() as stack,
    ):
        service.zone.add("test", "NS", "ns.test")
        service.zone.add("ns.test", "A", "127.0.0.1")
        service.zone.add(SHOP, "CNAME", "other-vendor.test")
        service.zone.add("other-vendor.test", "A", "127.0.0.9")
        for runner in runners(service, tmp_path):
            await stack.enter_async_context(parts.running(runner))
        yield service


def runners(service: Service, state_dir: Path) -> tuple[Runner[Any], Runner[Any]]:
    settings, database = service.settings, service.database
    policy, targets = tenant_policy(settings), ServiceTargets.of(settings)
    resolver = Resolver(settings.dns_servers, policy, authority_port=settings.dns_servers[0].port)
    found = Delegations(database, settings.acme_dns_zone)
    dns_check = DomainDnsCheck(database, resolver, targets, no_probe, found)
    claims = DomainClaims(database, resolver, targets, OwnNames.of(settings), no_probe, found)
    random = parts.HastyRandom()
    enrolling = Enrolling(claims, policy, OriginProbe(policy, settings.dns_servers))
    work = PreparationWork(database, Preparing(claims, policy), enrolling, dns_check, random)
    orders = parts.make_runner(
        database,
        parts.CountingIssuer(state_dir),
        service.keyring,
        find_lead=dns_check,
        is_delegated=dns_check.is_delegated,
    )
    return orders, Runner(database, preparations, work.perform, concurrency=4, random=random, poll_seconds=0.1)


async def prepare(partner: Partner, domain: str = SHOP, **changed: Any) -> Answer:
    return await partner.call("POST", f"/domains/{domain}/prepare", json=WANTED | changed)


async def show(partner: Partner, domain: str = SHOP) -> dict[str, Any]:
    body: dict[str, Any] = (await partner.call("GET", f"/domains/{domain}/prepare")).body
    return body


async def until_state(partner: Partner, state: str, domain: str = SHOP, **fields: Any) -> dict[str, Any]:
    """Asking makes the monitor look again."""

    body: dict[str, Any] = {}

    async def is_so() -> bool:
        body.update(await show(partner, domain))
        return body["state"] == state and all(body[key] == value for key, value in fields.items())

    await until(is_so, f"a domain that is {state}")
    return body


def delegate(service: Service, body: dict[str, Any]) -> None:
    record = body["records"][0]
    service.zone.replace(record["host"], record["type"], record["value"])


async def events_of(partner: Partner) -> list[tuple[str, str | None]]:
    items = (await partner.call("GET", "/webhooks/events")).body["events"]
    return [(each["type"], each["payload"].get("power_status")) for each in reversed(items)]


async def until_unwatched(service: Service) -> None:
    """From then on no monitor looks at prepared domains, unless somebody asks for them."""

    async def is_unwatched() -> bool:
        later = "update preparations set due_at = now() + interval '1 day' where lease_until is null returning id"
        return bool(await parts.fetch(service.database, later))

    await until(is_unwatched)
