"""The walk: what a partner and a customer's visitor do, step by step, each step checked and timed.

A `Partner` speaks to the API, a `Visitor` to the edge as a browser would: the certificate verified against the
root and the name, nothing trusted that is not in the answer. Knows addresses only; starts nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from common.cli.stage import (
    CUSTOMER,
    ELSEWHERE,
    ELSEWHERE_ADDRESS,
    EXPIRED,
    POWERDNS_ZONE,
    PROVIDER_ZONE,
    LabAddresses,
)
from common.errors import OperatorError

_REQUEST_SECONDS = 10.0
_SEEN_SECONDS = 10.0
_FLOW_SECONDS = 60.0
_FLOW_ENDS = frozenset({"unchecked", "halted", "timed_out", "closed"})
_POLL_SECONDS = 0.01
_CHECK_SECONDS = 0.2
P = ParamSpec("P")

_FORGED = "203.0.113.9"  # an address the visitor pretends to come from


class WalkFailed(OperatorError):
    """A step did not end as it must; the message names the unexpected result."""


class NoAnswer(WalkFailed):
    """The edge refused the handshake or the connection, as it does for a moment after a domain is enrolled."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise WalkFailed(f"expected JSON, got {self.body[:80]!r} (status {self.status})") from None


# Clients -------------------------------------------------------------------------------------------------


class Partner:
    """The API's client, with a token of its own. Made by `Partner.at`, which also closes it."""

    def __init__(self, session: aiohttp.ClientSession, application_id: str) -> None:
        self._session = session
        self._headers = {"applicationId": application_id}

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, base_url: str, application_id: str) -> AsyncIterator[Self]:
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        async with aiohttp.ClientSession(base_url, timeout=timeout) as session:
            yield cls(session, application_id)

    async def sign_in(self, client_secret: str) -> None:
        """Get a token with the application's secret, as a partner without a JWT library does."""
        body = {"applicationId": self._headers["applicationId"], "secret": client_secret}
        self._headers["Authorization"] = f"Bearer {(await self._ask('POST', '/token', body))['auth_token']}"

    async def eligibility(self, domain: str) -> dict[str, Any]:
        return await self._ask("GET", f"/power?domain={domain}")

    async def power(self, domain: str, application_url: str, root_paths: list[str] | None = None) -> str:
        body = {"domain": domain, "applicationUrl": application_url}
        return await self._change("POST", body | ({"powerRootPathAccess": root_paths} if root_paths else {}))

    async def move(self, domain: str, application_url: str) -> str:
        return await self._change("PUT", {"domain": domain, "applicationUrl": application_url})

    async def unpower(self, domain: str) -> str:
        return await self._change("DELETE", {"domain": domain})

    async def _change(self, method: str, body: dict[str, Any]) -> str:
        return str((await self._ask(method, "/power", body))["message"])

    async def check_domain(self, domain: str) -> dict[str, Any]:
        return await self._ask("POST", "/checkdomain", {"domain": domain})

    async def open_modal(self, site: str, domain: str, product: str, application_url: str) -> Flow:
        """What the modal on the page at `site` does until there is a flow for `domain` in Power or Secure."""
        try:
            async with self._session.get(f"{site}/") as page, self._session.get("/sdk/v1/frontage.js") as script:
                _expect("partner's page", (page.status, "/sdk/v1/frontage.js" in await page.text()), (200, True))
                _expect("SDK", (script.status, "connectDomain" in await script.text()), (200, True))
            async with self._session.post(f"{site}/token") as response:
                token = (await response.json())["token"]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"{site} did not answer: {error}") from error
        scoped = Partner(self._session, self._headers["applicationId"])
        scoped._headers["Authorization"] = f"Bearer {token}"
        record = {
            "type": "CNAME",
            "host": "{SUBDOMAIN}",
            "value": "{CNAME_TARGET}",
            "ttl": 300,
            "applicationUrl": application_url,
            "ssl": product == "secure",
        }
        body = {"domain": domain, "power": product == "power", "dnsRecords": [record]}
        return Flow(scoped, await scoped._ask("POST", "/connect/flows", body, status=201))

    async def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, status: int = 200
    ) -> dict[str, Any]:
        try:
            async with self._session.request(method, path, json=body, headers=self._headers) as response:
                answer = Answer(response.status, dict(response.headers), await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"the API did not answer {method} {path}: {error}") from error
        said: dict[str, Any] = answer.json()
        if answer.status != status:
            raise WalkFailed(f"{method} {path.partition('?')[0]} said {answer.status}: {said.get('message')}")
        return said


class Flow:
    """A flow of the connect modal, with the token of its page. Made by `Partner.open_modal`."""

    def __init__(self, partner: Partner, shown: dict[str, Any]) -> None:
        self.shown = shown
        self._partner = partner
        self._path = f"/connect/flows/{shown['id']}"

    async def act(self, action: str, body: dict[str, Any]) -> str:
        """Returns the state that the flow is in then."""
        self.shown = await self._partner._ask("POST", f"{self._path}/{action}", body)
        return str(self.shown["state"])

    async def until_planned(self) -> str:
        """Returns the plan in words. Raises: `WalkFailed`."""
        await self.until("planned")
        return ", ".join(f"{each['action']} {each['type']}" for each in self.shown["plan"]["changes"])

    async def apply(self, way: str, credentials: dict[str, str] | None = None) -> str:
        """Returns the state that the flow is in then. Raises: `WalkFailed` when it halts."""
        body = {"way": way, "digest": self.shown["plan"]["digest"]}
        state = await self.act("apply", body | ({"credentials": credentials} if credentials else {}))
        if state == "halted":
            raise WalkFailed(str(self.shown["error"]))
        return state

    async def until_served(self, product: str) -> None:
        """Enrolled, and its certificate live. Raises: `WalkFailed`."""
        await self.until("finished")
        await self._read_until(lambda shown: _certificates(shown) == ["live"], "whose certificate is live")
        [enrolment] = self.shown["enrolments"]
        _expect("enrolment", (enrolment["product"], enrolment["status"]), (product, "success"))

    async def until(self, state: str) -> None:
        """Raises: `WalkFailed` when the flow comes to another end."""
        await self._read_until(lambda shown: shown["state"] == state, f"that is {state}")

    async def _read_until(self, is_reached: Callable[[dict[str, Any]], bool], expected: str) -> None:
        deadline = time.monotonic() + _FLOW_SECONDS
        while not is_reached(self.shown):
            if time.monotonic() > deadline or self.shown["state"] in _FLOW_ENDS:
                raise WalkFailed(f"expected a flow {expected}, it is {self.shown['state']}: {self.shown['error']}")
            await asyncio.sleep(_POLL_SECONDS)
            self.shown = await self._partner._ask("GET", self._path)


def _certificates(flow: dict[str, Any]) -> list[str | None]:
    return [enrolment.get("certificate") for enrolment in flow["enrolments"]]


class Visitor:
    """A browser of sorts: connects to the edge whatever the domain, a new connection each time."""

    def __init__(self, host: str, port: int, ca_file: Path) -> None:
        self._host = host
        self._port = port
        self._ca_file = ca_file

    async def get(self, domain: str, path: str = "/") -> Answer:
        """Raises: `NoAnswer`, also when there is no certificate for `domain` that the root vouches for."""
        url = f"https://{domain}:{self._port}{path}"
        try:
            async with self._session() as session, session.get(URL(url, encoded=True)) as response:
                return Answer(response.status, dict(response.headers), await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswer(f"no answer from {url}: {error}") from error

    async def get_when(self, domain: str, text: str) -> Answer:
        """The first page of `domain` with `text` in it: edges learn of a commit within milliseconds, not at once.

        Raises: `WalkFailed` when none comes in time.
        """
        deadline = time.monotonic() + _SEEN_SECONDS
        while True:
            try:
                answer = await self.get(domain)
                if answer.status == 200 and text in answer.body.decode("utf-8", "replace"):
                    return answer
                seen = f"status {answer.status}: {answer.body[:80]!r}"
            except NoAnswer as error:
                seen = str(error)
            if time.monotonic() > deadline:
                raise WalkFailed(f'expected "{text}" at {domain}, got {seen}')
            await asyncio.sleep(_POLL_SECONDS)

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=_To(self._host), ssl=_trusting(self._ca_file), force_close=True, use_dns_cache=False
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=_REQUEST_SECONDS),
            headers={"X-Forwarded-For": _FORGED},
            requote_redirect_url=False,
        )


class _To(AbstractResolver):
    """Leads every name to one address."""

    def __init__(self, host: str) -> None:
        self._host = host

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        return [
            ResolveResult(
                hostname=host, host=self._host, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """Holds nothing."""


def _trusting(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        raise WalkFailed(f"the CA's root at {ca_file} cannot be read: {error}") from error


# The steps -----------------------------------------------------------------------------------------------

Tell = Callable[[str, float, str], None]
"""Called after each step with its name, its seconds, and what was seen."""


def _step(
    name: str,
) -> Callable[[Callable[Concatenate[Walk, P], Awaitable[str]]], Callable[Concatenate[Walk, P], Awaitable[None]]]:
    """Makes a method that returns what it saw into a step that tells its name, its time and that."""

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
    """The way through the service of `domain`, which leads to the application, and of names that the connect modal
    makes lead there, one at each of the lab's DNS providers. Steps raise `WalkFailed`."""

    def __init__(self, partner: Partner, visitor: Visitor, domain: str, lab: LabAddresses, tell: Tell) -> None:
        self.tell = tell
        self._partner = partner
        self._visitor = visitor
        self._domain = domain
        label = domain.partition(".")[0]
        self._elsewhere = f"{label}.{ELSEWHERE}"
        self._at_provider = f"{label}.{PROVIDER_ZONE}"
        self._at_powerdns = f"{label}.{POWERDNS_ZONE}"
        self._lab = lab
        self._flow: Flow

    async def is_powered(self) -> bool:
        """Whether an earlier walk powered the domain for this application."""
        return bool((await self._partner.eligibility(self._domain))["powerStatus"] == "active")

    @_step("token")
    async def sign_in(self, client_secret: str) -> str:
        await self._partner.sign_in(client_secret)
        return "POST /token"

    @_step("eligibility")
    async def find_eligible(self) -> str:
        found = await self._partner.eligibility(self._domain)
        if found["eligible"] is not True or found["powerStatus"] != "inactive":
            raise WalkFailed(f"{self._domain} is not eligible: {json.dumps(found)}")
        return f"CNAME to {found['cnameTarget']}"

    @_step("POST /power")
    async def power(self) -> str:
        if await self.is_powered():  # on a kept state directory, where the origin was another
            return await self._partner.move(self._domain, f"{self._lab.origin}/a")
        return await self._partner.power(self._domain, f"{self._lab.origin}/a", ["/static"])

    @_step("first HTTPS response")
    async def serve(self) -> str:
        await self._visitor.get_when(self._domain, "Version A of the application")
        return "certificate verified"

    @_step("forwarded headers and path")
    async def check_forwarding(self) -> str:
        answer = await self._visitor.get(self._domain, "/echo?a=1%2F2&b=x+y")
        seen = answer.json()
        _expect("path", seen["path"], "/a/echo")
        _expect("query", seen["query"], "a=1%2F2&b=x+y")
        headers: dict[str, list[str]] = {}
        for name, value in seen["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        _expect("x-service-forwarded-host", headers.get("x-service-forwarded-host"), [self._domain])
        _expect("x-forwarded-proto", headers.get("x-forwarded-proto"), ["https"])
        forwarded_host = headers.get("x-forwarded-host", [""])
        _expect("x-forwarded-host", [host.partition(":")[0] for host in forwarded_host], [self._domain])
        if not headers.get("x-forwarded-for") or any(_FORGED in value for value in headers["x-forwarded-for"]):
            raise WalkFailed(f"x-forwarded-for: a forged value came through: {headers.get('x-forwarded-for')}")
        return f"{self._domain} from {headers['x-forwarded-for'][0]}"

    @_step("root path")
    async def check_root_path(self) -> str:
        answer = await self._visitor.get(self._domain, "/static/mark.svg")
        _expect("content type", answer.headers.get("Content-Type"), "image/svg+xml")
        return "/static/mark.svg from the origin's root"

    @_step("status")
    async def check_status(self) -> str:
        found = await self._partner.eligibility(self._domain)
        _expect("eligible", found["eligible"], expected=False)
        _expect("powerStatus", found["powerStatus"], "active")
        return "active, no longer eligible"

    @_step("PUT /power, seen at the edge")
    async def move(self) -> str:
        message = await self._partner.move(self._domain, f"{self._lab.origin}/b")
        await self._visitor.get_when(self._domain, "Version B of the application")
        return message

    @_step("DELETE /power, gone at the edge")
    async def remove(self) -> str:
        message = await self._partner.unpower(self._domain)
        deadline = time.monotonic() + _SEEN_SECONDS
        while time.monotonic() < deadline:
            try:
                await self._visitor.get(self._domain)
            except NoAnswer:
                return message
            await asyncio.sleep(_POLL_SECONDS)
        raise WalkFailed(f"{self._domain} is still served {_SEEN_SECONDS:.0f} seconds after DELETE /power")

    @_step("domain check")
    async def check_domains(self) -> str:
        """The API learns within seconds where the registry is."""
        deadline = time.monotonic() + _SEEN_SECONDS
        while True:
            expired = await self._partner.check_domain(EXPIRED)
            if expired["expired"] or time.monotonic() > deadline:
                break
            await asyncio.sleep(_CHECK_SECONDS)
        current = await self._partner.check_domain(CUSTOMER)
        seen = [(found["registered"], found["expired"]) for found in (current, expired)]
        _expect("registered and expired", seen, [(True, False), (True, True)])
        return f"{CUSTOMER} registered, {EXPIRED} expired"

    @_step("connect modal")
    async def open_modal(self) -> str:
        await self._change_zone("PUT", f"{self._elsewhere} A {ELSEWHERE_ADDRESS}")
        self._flow = await self._open_flow(self._elsewhere, "power")
        return f"a scoped token, a flow that is {self._flow.shown['state']}"

    @_step("plan")
    async def plan(self) -> str:
        return await self._flow.until_planned()

    @_step("change of the zone, by RFC 2136")
    async def apply(self) -> str:
        await self._flow.apply("dynamic_update", self._lab_credentials())
        return "the plan, whole, and read back"

    @_step("records live, domain powered")
    async def finish(self) -> str:
        await self._flow.until_served("power")
        return f"{self._elsewhere} from the connect modal"

    @_step("first HTTPS response of the flow")
    async def serve_connected(self) -> str:
        await self._visitor.get_when(self._elsewhere, "Version A of the application")
        return "certificate verified"

    @_step("undo")
    async def undo(self) -> str:
        state = await self._flow.act("undo", {"credentials": self._lab_credentials()})
        _expect("flow", state, "undone")
        zone = await self._change_zone("DELETE", f"{self._elsewhere} A {ELSEWHERE_ADDRESS}")
        _expect("records left", [line for line in zone.splitlines() if line.startswith(self._elsewhere)], [])
        return f"A {ELSEWHERE_ADDRESS} is back"

    @_step("consent, by Domain Connect")
    async def consent(self) -> str:
        await self._change_zone("PUT", f"{self._at_provider} A {ELSEWHERE_ADDRESS}")
        self._flow = await self._open_flow(self._at_provider, "secure")
        plan = await self._flow.until_planned()
        await self._flow.apply("domain_connect")
        await self._agree(self._flow.shown["handover"]["url"])
        return plan

    @_step("records live, domain secured")
    async def finish_secured(self) -> str:
        await self._flow.until_served("secure")
        return f"{self._at_provider}, as its provider wrote it"

    @_step("HTTPS by Secure")
    async def serve_secured(self) -> str:
        await self._visitor.get_when(self._at_provider, self._at_provider)
        return "certificate issued and verified"

    @_step("change by PowerDNS' API, and undo")
    async def change_powerdns(self) -> str:
        key, _, url = self._lab.powerdns.partition("@")
        credentials = {"pdns_server": url, "auth_token": key}
        self._flow = await self._open_flow(self._at_powerdns, "power")
        plan = await self._flow.until_planned()
        await self._flow.apply("provider_api", credentials)
        await self._flow.until_served("power")
        await self._visitor.get_when(self._at_powerdns, "Version A of the application")
        _expect("flow", await self._flow.act("undo", {"credentials": credentials}), "undone")
        return f"{plan}, live over HTTPS, taken back"

    async def _open_flow(self, name: str, product: str) -> Flow:
        url = self._lab.origin if product == "secure" else f"{self._lab.origin}/a"
        return await self._partner.open_modal(self._lab.partner, name, product, url)

    async def _agree(self, consent_page: str) -> None:
        """As a person on the provider's page, whose browser then returns to the API."""
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(URL(consent_page, encoded=True), data={"decision": "connect"}) as response,
            ):
                _expect("return from the provider", response.status, 200)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"the provider's page did not answer: {error}") from error

    async def _change_zone(self, method: str, record: str) -> str:
        """As its owner does. Returns the zone's records, one a line; a record to remove must be there."""
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        try:
            async with aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session:
                async with session.get(self._lab.zone) as response:
                    before = await response.text()
                async with session.request(method, self._lab.zone, data=record) as response:
                    after = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"{self._lab.zone} did not answer: {error}") from error
        _expect(f"{record} in the zone", record in before, method == "DELETE")
        return after

    def _lab_credentials(self) -> dict[str, str]:
        name, _, secret = self._lab.key.partition(":")
        return {"key_name": name, "key_secret": secret, "server": self._lab.dns}


def _expect(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise WalkFailed(f"{what} is {seen!r}, expected {expected!r}")
