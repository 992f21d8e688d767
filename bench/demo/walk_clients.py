"""The clients of the walk: a partner's program at the API, with a flow of the connect modal, and a visitor's browser.

The visitor verifies the certificate against the CA's root and the name. Clients know addresses only and start nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from common.errors import OperatorError

REQUEST_SECONDS = 10.0
SEEN_SECONDS = 10.0
_FLOW_SECONDS = 60.0
_FLOW_ENDS = frozenset({"unchecked", "halted", "timed_out", "closed"})
POLL_SECONDS = 0.01
FORGED_ADDRESS = "203.0.113.9"  # an address the visitor pretends to come from


class WalkFailed(OperatorError):
    """A step did not end as it must; the message names the unexpected result."""


class NoAnswer(WalkFailed):
    """The edge refused the handshake or the connection, as it does for a moment after a domain is enrolled."""


class UnexpectedStatus(WalkFailed):
    """The API answered with another status than expected. `code` is the answer's, if it has one."""

    def __init__(self, request: str, status: int, message: object, code: str | None) -> None:
        super().__init__(f"{request} answered {status}: {message}" + (f" ({code})" if code else ""))
        self.code = code


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response as a client of the walk reads it."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse the body as JSON.

        Raises: `WalkFailed`.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            raise WalkFailed(f"expected JSON, got {self.body[:80]!r} (status {self.status})") from None


class PartnerClient:
    """A client of the API with a token of its own. Opened and closed by `PartnerClient.at`."""

    def __init__(self, session: aiohttp.ClientSession, application_id: str) -> None:
        self._session = session
        self._headers = {"applicationId": application_id}

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, base_url: str, application_id: str) -> AsyncIterator[Self]:
        """Open a client for the block; `sign_in` gets its token."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with aiohttp.ClientSession(base_url, timeout=timeout) as session:
            yield cls(session, application_id)

    async def sign_in(self, client_secret: str) -> None:
        """Get a token with the application's secret, as a partner without a JWT library does."""
        body = {"applicationId": self._headers["applicationId"], "secret": client_secret}
        self._headers["Authorization"] = f"Bearer {(await self.ask('POST', '/token', body))['auth_token']}"

    async def eligibility(self, domain: str) -> dict[str, Any]:
        """Return the domain's eligibility and status in Power."""
        return await self.ask("GET", f"/power?domain={domain}")

    async def power(self, domain: str, application_url: str, root_paths: list[str] | None = None) -> str:
        """Power the domain, and return the API's message."""
        body = {"domain": domain, "applicationUrl": application_url}
        return await self._change("POST", body | ({"powerRootPathAccess": root_paths} if root_paths else {}))

    async def move(self, domain: str, application_url: str) -> str:
        """Change the domain's application URL, and return the API's message."""
        return await self._change("PUT", {"domain": domain, "applicationUrl": application_url})

    async def unpower(self, domain: str) -> str:
        """Remove the domain from Power, and return the API's message."""
        return await self._change("DELETE", {"domain": domain})

    async def _change(self, method: str, body: dict[str, Any]) -> str:
        return str((await self.ask(method, "/power", body))["message"])

    async def check_domain(self, domain: str) -> dict[str, Any]:
        """Return the domain check's answer."""
        return await self.ask("POST", "/checkdomain", {"domain": domain})

    async def open_modal(self, site: str, domain: str, product: str) -> FlowClient:
        """Do what the modal on the page at `site` does until there is a flow for `domain` in Power or Secure.

        Raises: `WalkFailed`.
        """
        try:
            async with self._session.get(f"{site}/") as page, self._session.get("/sdk/v1/frontage.js") as script:
                expect("partner's page", (page.status, "/sdk/v1/frontage.js" in await page.text()), (200, True))
                expect("SDK", (script.status, "connectDomain" in await script.text()), (200, True))
            async with self._session.post(f"{site}/token", params={"product": product}) as response:
                token = (await response.json())["token"]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"{site} did not answer: {error}") from error
        scoped = PartnerClient(self._session, self._headers["applicationId"])
        scoped._headers["Authorization"] = f"Bearer {token}"
        body = {"domain": domain}  # the token names the registered configuration
        return FlowClient(scoped, await scoped.ask("POST", "/connect/flows", body, status=201))

    async def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, status: int = 200
    ) -> dict[str, Any]:
        """Send a request, and return the content of its answer.

        Raises: `UnexpectedStatus` for another status than `status`; `WalkFailed`.
        """
        try:
            async with self._session.request(method, path, json=body, headers=self._headers) as response:
                answer = HttpAnswer(response.status, dict(response.headers), await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WalkFailed(f"the API did not answer {method} {path}: {error}") from error
        content: dict[str, Any] = answer.json()
        if answer.status != status:
            request = f"{method} {path.partition('?')[0]}"
            raise UnexpectedStatus(request, answer.status, content.get("message"), content.get("code"))
        return content


class FlowClient:
    """A flow of the connect modal, with the token of its page. Created by `PartnerClient.open_modal`."""

    def __init__(self, partner: PartnerClient, shown: dict[str, Any]) -> None:
        self.shown = shown
        self._partner = partner
        self._path = f"/connect/flows/{shown['id']}"

    async def act(self, action: str, body: dict[str, Any]) -> str:
        """Send an action, and return the state of the flow after it."""
        self.shown = await self._partner.ask("POST", f"{self._path}/{action}", body)
        return str(self.shown["state"])

    async def until_planned(self) -> str:
        """Wait for the plan, and return it in words.

        Raises: `WalkFailed`.
        """
        await self.until("planned")
        return ", ".join(f"{each['action']} {each['type']}" for each in self.shown["plan"]["changes"])

    async def apply(self, way: str, credentials: dict[str, str] | None = None) -> str:
        """Apply the plan, and return the state of the flow after it.

        Raises: `WalkFailed` when the flow halts.
        """
        body = {"way": way, "digest": self.shown["plan"]["digest"]}
        state = await self.act("apply", body | ({"credentials": credentials} if credentials else {}))
        if state == "halted":
            raise WalkFailed(str(self.shown["error"]))
        return state

    async def until_served(self, product: str) -> None:
        """Wait until the flow's domain is enrolled in `product` and its certificate is live.

        Raises: `WalkFailed`.
        """
        await self.until("finished")
        await self._read_until(lambda shown: _certificates(shown) == ["live"], "whose certificate is live")
        [enrolment] = self.shown["enrolments"]
        expect("enrolment", (enrolment["product"], enrolment["status"]), (product, "success"))

    async def until(self, state: str) -> None:
        """Wait until the flow is in that state.

        Raises: `WalkFailed` when the flow comes to another end.
        """
        await self._read_until(lambda shown: shown["state"] == state, f"that is {state}")

    async def _read_until(self, is_reached: Callable[[dict[str, Any]], bool], expected: str) -> None:
        deadline = time.monotonic() + _FLOW_SECONDS
        while not is_reached(self.shown):
            if time.monotonic() > deadline or self.shown["state"] in _FLOW_ENDS:
                raise WalkFailed(f"expected a flow {expected}, it is {self.shown['state']}: {self.shown['error']}")
            await asyncio.sleep(POLL_SECONDS)
            self.shown = await self._partner.ask("GET", self._path)


def _certificates(flow: dict[str, Any]) -> list[str | None]:
    return [enrolment.get("certificate") for enrolment in flow["enrolments"]]


class VisitorClient:
    """A visitor's browser: connects to the edge whatever the domain resolves to, a new connection each time."""

    def __init__(self, host: str, port: int, ca_file: Path) -> None:
        self._host = host
        self._port = port
        self._ca_file = ca_file

    async def get(self, domain: str, path: str = "/") -> HttpAnswer:
        """Request a page of the domain.

        Raises: `NoAnswer`, also when there is no certificate for `domain` that the root vouches for.
        """
        url = f"https://{domain}:{self._port}{path}"
        try:
            async with self._session() as session, session.get(URL(url, encoded=True)) as response:
                return HttpAnswer(response.status, dict(response.headers), await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswer(f"no answer from {url}: {error}") from error

    async def get_when(self, domain: str, text: str) -> HttpAnswer:
        """Return the first page of `domain` once it has `text` in it.

        Edges learn of a commit within milliseconds, not at once.

        Raises: `WalkFailed` when none comes in time.
        """
        deadline = time.monotonic() + SEEN_SECONDS
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
            await asyncio.sleep(POLL_SECONDS)

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=OneAddressResolver(self._host), ssl=_trusting(self._ca_file), force_close=True, use_dns_cache=False
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
            headers={"X-Forwarded-For": FORGED_ADDRESS},
            requote_redirect_url=False,
        )


class OneAddressResolver(AbstractResolver):
    """Resolves every name to one address."""

    def __init__(self, host: str) -> None:
        self._host = host

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the one address."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        return [
            ResolveResult(
                hostname=host, host=self._host, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """Do nothing, since nothing is open."""


def _trusting(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        raise WalkFailed(f"the CA's root at {ca_file} cannot be read: {error}") from error


def expect(what: str, seen: object, expected: object) -> None:
    """Require that the two are equal.

    Raises: `WalkFailed`.
    """
    if seen != expected:
        raise WalkFailed(f"{what} is {seen!r}, expected {expected!r}")
