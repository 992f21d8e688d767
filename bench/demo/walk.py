"""The walk of `frontage demo`: what a partner and a customer's visitor do, step by step, each step checked and timed.

Knows addresses only; starts nothing. Its clients are `bench.demo.walk_clients`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec

import aiohttp
from yarl import URL

from bench.demo.stage import CUSTOMER, ELSEWHERE, ELSEWHERE_ADDRESS, EXPIRED, POWERDNS_ZONE, PROVIDER_ZONE, LabAddresses
from bench.demo.walk_clients import (
    FORGED_ADDRESS,
    POLL_SECONDS,
    REQUEST_SECONDS,
    SEEN_SECONDS,
    FlowClient,
    NoAnswer,
    PartnerClient,
    VisitorClient,
    WalkFailed,
    expect,
)

_CHECK_SECONDS = 0.2
P = ParamSpec("P")


# Clients -------------------------------------------------------------------------------------------------


# The steps -----------------------------------------------------------------------------------------------

Tell = Callable[[str, float, str], None]
"""Called after each step with its name, its seconds, and what was seen."""


def _step(
    name: str,
) -> Callable[[Callable[Concatenate[Walk, P], Awaitable[str]]], Callable[Concatenate[Walk, P], Awaitable[None]]]:
    """Decorate a method as a step: report its name, its duration and what the method returned."""

    def timed(
        method: Callable[Concatenate[Walk, P], Awaitable[str]],
    ) -> Callable[Concatenate[Walk, P], Awaitable[None]]:
        @functools.wraps(method)
        async def step(walk: Walk, /, *args: P.args, **kwargs: P.kwargs) -> None:
            start = time.perf_counter()
            try:
                seen = await method(walk, *args, **kwargs)
            except WalkFailed as error:
                raise WalkFailed(f"{name}: {error}") from error
            walk.tell(name, time.perf_counter() - start, seen)

        return step

    return timed


class Walk:
    """Walks through the service with `domain`, and with names that the connect modal makes lead to the application.

    `domain` leads there already; of the other names one is at each of the lab's DNS providers. Steps raise
    `WalkFailed`.
    """

    def __init__(
        self, partner: PartnerClient, visitor: VisitorClient, domain: str, lab: LabAddresses, tell: Tell
    ) -> None:
        self.tell = tell
        self._partner = partner
        self._visitor = visitor
        self._domain = domain
        label = domain.partition(".")[0]
        self._elsewhere = f"{label}.{ELSEWHERE}"
        self._at_provider = f"{label}.{PROVIDER_ZONE}"
        self._at_powerdns = f"{label}.{POWERDNS_ZONE}"
        self._lab = lab
        self._flow: FlowClient

    async def is_powered(self) -> bool:
        """Return whether an earlier walk powered the domain for this application."""
        return bool((await self._partner.eligibility(self._domain))["powerStatus"] == "active")

    @_step("token")
    async def sign_in(self, client_secret: str) -> str:
        """Get a token with the application's secret."""
        await self._partner.sign_in(client_secret)
        return "POST /token"

    @_step("eligibility")
    async def find_eligible(self) -> str:
        """Check that the domain is eligible and not yet powered."""
        found = await self._partner.eligibility(self._domain)
        if found["eligible"] is not True or found["powerStatus"] != "inactive":
            raise WalkFailed(f"{self._domain} is not eligible: {json.dumps(found)}")
        return f"CNAME to {found['cnameTarget']}"

    @_step("POST /power")
    async def power(self) -> str:
        """Power the domain, or move it to the origin of this walk if it is powered."""
        if await self.is_powered():  # on a kept state directory, where the origin was another
            return await self._partner.move(self._domain, f"{self._lab.origin}/a")
        return await self._partner.power(self._domain, f"{self._lab.origin}/a", ["/static"])

    @_step("first HTTPS response")
    async def serve(self) -> str:
        """Check that the domain serves the application over HTTPS."""
        await self._visitor.get_when(self._domain, "Version A of the application")
        return "certificate verified"

    @_step("forwarded headers and path")
    async def check_forwarding(self) -> str:
        """Check path, query and headers as the origin receives them."""
        answer = await self._visitor.get(self._domain, "/echo?a=1%2F2&b=x+y")
        seen = answer.json()
        expect("path", seen["path"], "/a/echo")
        expect("query", seen["query"], "a=1%2F2&b=x+y")
        headers: dict[str, list[str]] = {}
        for name, value in seen["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        expect("x-service-forwarded-host", headers.get("x-service-forwarded-host"), [self._domain])
        expect("x-forwarded-proto", headers.get("x-forwarded-proto"), ["https"])
        forwarded_host = headers.get("x-forwarded-host", [""])
        expect("x-forwarded-host", [host.partition(":")[0] for host in forwarded_host], [self._domain])
        if not headers.get("x-forwarded-for") or any(FORGED_ADDRESS in value for value in headers["x-forwarded-for"]):
            raise WalkFailed(f"x-forwarded-for: a forged value came through: {headers.get('x-forwarded-for')}")
        return f"{self._domain} from {headers['x-forwarded-for'][0]}"

    @_step("root path")
    async def check_root_path(self) -> str:
        """Check that a root path is served from the origin's root."""
        answer = await self._visitor.get(self._domain, "/static/mark.svg")
        expect("content type", answer.headers.get("Content-Type"), "image/svg+xml")
        return "/static/mark.svg from the origin's root"

    @_step("status")
    async def check_status(self) -> str:
        """Check that the domain is active."""
        found = await self._partner.eligibility(self._domain)
        expect("eligible", found["eligible"], expected=False)
        expect("powerStatus", found["powerStatus"], "active")
        return "active, no longer eligible"

    @_step("PUT /power, seen at the edge")
    async def move(self) -> str:
        """Change the application's URL, and check that the edge follows."""
        message = await self._partner.move(self._domain, f"{self._lab.origin}/b")
        await self._visitor.get_when(self._domain, "Version B of the application")
        return message

    @_step("DELETE /power, gone at the edge")
    async def remove(self) -> str:
        """Remove the domain, and check that the edge serves it no more."""
        message = await self._partner.unpower(self._domain)
        deadline = time.monotonic() + SEEN_SECONDS
        while time.monotonic() < deadline:
            try:
                await self._visitor.get(self._domain)
            except NoAnswer:
                return message
            await asyncio.sleep(POLL_SECONDS)
        raise WalkFailed(f"{self._domain} is still served {SEEN_SECONDS:.0f} seconds after DELETE /power")

    @_step("domain check")
    async def check_domains(self) -> str:
        """Check what the domain check says of a registered and of an expired domain.

        The API learns the registry's address within seconds.
        """
        deadline = time.monotonic() + SEEN_SECONDS
        while True:
            expired = await self._partner.check_domain(EXPIRED)
            if expired["expired"] or time.monotonic() > deadline:
                break
            await asyncio.sleep(_CHECK_SECONDS)
        current = await self._partner.check_domain(CUSTOMER)
        seen = [(found["registered"], found["expired"]) for found in (current, expired)]
        expect("registered and expired", seen, [(True, False), (True, True)])
        return f"{CUSTOMER} registered, {EXPIRED} expired"

    @_step("connect modal")
    async def open_modal(self) -> str:
        """Open the connect modal for a name whose zone leads elsewhere."""
        await self._change_zone("PUT", f"{self._elsewhere} A {ELSEWHERE_ADDRESS}")
        self._flow = await self._open_flow(self._elsewhere, "power")
        return f"a scoped token, a flow that is {self._flow.shown['state']}"

    @_step("plan")
    async def plan(self) -> str:
        """Wait for the plan of the flow's change."""
        return await self._flow.until_planned()

    @_step("change of the zone, by RFC 2136")
    async def apply(self) -> str:
        """Apply the plan by a signed update (RFC 2136)."""
        await self._flow.apply("dynamic_update", self._lab_credentials())
        return "the plan, whole, and read back"

    @_step("records live, domain powered")
    async def finish(self) -> str:
        """Wait until the records are live and the domain is powered."""
        await self._flow.until_served("power")
        return f"{self._elsewhere} from the connect modal"

    @_step("first HTTPS response of the flow")
    async def serve_connected(self) -> str:
        """Check that the connected name serves the application over HTTPS."""
        await self._visitor.get_when(self._elsewhere, "Version A of the application")
        return "certificate verified"

    @_step("undo")
    async def undo(self) -> str:
        """Undo the flow, and check that the zone is as before."""
        state = await self._flow.act("undo", {"credentials": self._lab_credentials()})
        expect("flow", state, "undone")
        zone = await self._change_zone("DELETE", f"{self._elsewhere} A {ELSEWHERE_ADDRESS}")
        expect("records left", [line for line in zone.splitlines() if line.startswith(self._elsewhere)], [])
        return f"A {ELSEWHERE_ADDRESS} is back"

    @_step("consent, by Domain Connect")
    async def consent(self) -> str:
        """Connect a name by Domain Connect, and consent on the provider's page."""
        await self._change_zone("PUT", f"{self._at_provider} A {ELSEWHERE_ADDRESS}")
        self._flow = await self._open_flow(self._at_provider, "secure")
        plan = await self._flow.until_planned()
        await self._flow.apply("domain_connect")
        await self._agree(self._flow.shown["handover"]["url"])
        return plan

    @_step("records live, domain secured")
    async def finish_secured(self) -> str:
        """Wait until the records are live and the domain is secured."""
        await self._flow.until_served("secure")
        return f"{self._at_provider}, as its provider wrote it"

    @_step("HTTPS by Secure")
    async def serve_secured(self) -> str:
        """Check that the secured name answers over HTTPS."""
        await self._visitor.get_when(self._at_provider, self._at_provider)
        return "certificate issued and verified"

    @_step("change by PowerDNS' API, and undo")
    async def change_powerdns(self) -> str:
        """Connect a name by PowerDNS' API, and undo that."""
        key, _, url = self._lab.powerdns.partition("@")
        credentials = {"pdns_server": url, "auth_token": key}
        self._flow = await self._open_flow(self._at_powerdns, "power")
        plan = await self._flow.until_planned()
        await self._flow.apply("provider_api", credentials)
        await self._flow.until_served("power")
        await self._visitor.get_when(self._at_powerdns, "Version A of the application")
        expect("flow", await self._flow.act("undo", {"credentials": credentials}), "undone")
        return f"{plan}, live over HTTPS, taken back"

    async def _open_flow(self, name: str, product: str) -> FlowClient:
        return await self._partner.open_modal(self._lab.partner, name, product)

    async def _agree(self, consent_page: str) -> None:
        """Consent as a person on the provider's page, whose browser then returns to the API."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(URL(consent_page, encoded=True), data={"decision": "connect"}) as response,
            ):
                expect("return from the provider", response.status, 200)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"the provider's page did not answer: {error}") from error

    async def _change_zone(self, method: str, record: str) -> str:
        """Change the zone as its owner does, and return its records, one a line.

        A record to add must not be there before, and one to remove must.
        """
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session:
                async with session.get(self._lab.zone) as response:
                    before = await response.text()
                async with session.request(method, self._lab.zone, data=record) as response:
                    after = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"{self._lab.zone} did not answer: {error}") from error
        expect(f"{record} in the zone", record in before, method == "DELETE")
        return after

    def _lab_credentials(self) -> dict[str, str]:
        name, _, secret = self._lab.key.partition(":")
        return {"key_name": name, "key_secret": secret, "server": self._lab.dns}
