"""Partners at the balancer, and visitors of the edges. They note what they did and saw, and judge nothing.

One task writes a domain, so that its writes follow each other. A write that got no answer is sent again, a POST under
the same idempotency key, until it is answered or the run is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import uuid
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp

from bench.cluster.history import History, Operation
from bench.cluster.world import ZONE, ClusterWorld, RoleMachine
from bench.demo.walk_clients import OneAddressResolver

STEADY, CHURNING = 4, 4
_WRITE_PAUSE_SECONDS = (0.3, 1.5)
_VISIT_PAUSE_SECONDS = 0.05
_RETRY_SECONDS = 0.5
_ENROLMENTS = 2
_FLOW_SECONDS = 150.0
_FLOW_PAUSE_SECONDS = 0.25
_VISIT_SECONDS = 30.0
_NOT_SERVED = frozenset({404, 421})
_TRY_AGAIN = frozenset({"internal", "idempotency_key_running", "rate_limited"})
"""Codes of answers that leave open whether a write was done, or that ask for it again."""


@dataclass
class Clients:
    """All clients of a run. Mutable state: the history, and whether they are to come to an end."""

    world: ClusterWorld
    history: History
    random: Random
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    churned: list[str] = field(default_factory=list)
    """Every domain that came and went, or came last."""

    @property
    def steady(self) -> list[str]:
        """The domains that stay enrolled, and are visited without a gap."""
        return [f"shop.steady{number}.{ZONE}" for number in range(STEADY)]

    async def enrol(self) -> None:
        """Enrol the steady domains, and wait until every edge serves them.

        Raises: TimeoutError.
        """
        async with asyncio.timeout(120):
            await asyncio.gather(*(self._write("POST", domain, "v0") for domain in self.steady))
            for edge in self.world.edges:
                async with self._visitor(edge) as session:
                    for domain in self.steady:
                        while (await self._visit(session, edge, domain)).outcome != "ok":  # noqa: ASYNC110 - an edge
                            await asyncio.sleep(0.1)

    async def work(self) -> None:
        """Write, read and visit until it is quiet."""
        async with asyncio.TaskGroup() as tasks:
            for domain in self.steady:
                tasks.create_task(self._change(domain, Random(self.random.random())), name=f"partner of {domain}")
            for number in range(CHURNING):
                work = self._come_and_go(f"churning{number}", Random(self.random.random()))
                tasks.create_task(work, name=f"partner of churning{number}")
            tasks.create_task(self._connect_all(Random(self.random.random())), name="person at the modal")
            for edge in self.world.edges:
                tasks.create_task(self._visit_all(edge), name=f"visitors of {edge.name}")
                tasks.create_task(self._watch_readiness(edge), name=f"readiness of {edge.name}")

    # Partners ---------------------------------------------------------------------------------------------

    async def _change(self, domain: str, random: Random) -> None:
        """Change a domain's application again and again."""
        number = 0
        while not self.quiet.is_set():
            number += 1
            await self._write("PUT", domain, f"v{number}")
            await self._read(domain)
            await self._pause(random)

    async def _come_and_go(self, name: str, random: Random) -> None:
        """Enrol a domain, change it, and remove it, again and again; the last one stays enrolled.

        A name is enrolled a few times only, as often as the service allows in a day.
        """
        number = 0
        while not self.quiet.is_set():
            domain = f"{name}.customer{number}.{ZONE}"
            self.churned.append(domain)
            for _ in range(_ENROLMENTS):
                for method in ("POST", "PUT", "DELETE"):
                    number += 1
                    await self._write(method, domain, None if method == "DELETE" else f"v{number}")
                    await self._pause(random)
                    await self._read(domain)
        await self._write("POST", domain, f"v{number + 1}")

    async def _pause(self, random: Random) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(*_WRITE_PAUSE_SECONDS)):
                await self.quiet.wait()

    async def _write(self, method: str, domain: str, value: str | None) -> None:
        """Write until there is an answer."""
        body = {"domain": domain} | ({"applicationUrl": f"{self.world.origin}/{value}"} if value else {})
        operation = self.history.begin("partner", "write", domain, value)
        key = str(uuid.uuid4()) if method == "POST" else ""
        while True:
            status, answer = await self._ask(method, "/power", body, key=key)
            code = answer.get("code")
            if status == 200:
                self.history.end(operation, "ok", method)
                return
            if code and status != 503 and code not in _TRY_AGAIN:
                is_done = method == "DELETE" and code == "domain_not_valid" and operation.unanswered_at is not None
                self.history.end(operation, "ok" if is_done else "refused", f"{method} {status} {answer}")
                return
            operation.unanswered_at = self.history.now
            await asyncio.sleep(_RETRY_SECONDS)

    async def _connect_all(self, random: Random) -> None:
        """Connect one domain after another by a flow."""
        number = 0
        while not self.quiet.is_set():
            number += 1
            domain = f"shop.connected{number}.{ZONE}"
            self.churned.append(domain)
            await self._connect(domain, self.history.begin("person", "flow", domain))
            await self._pause(random)

    async def _connect(self, domain: str, operation: Operation) -> None:
        """Connect a domain by a flow, whose record is there already, until it is finished or lost."""
        write = self.history.begin("person", "write", domain, "flow")
        write.unanswered_at = write.began
        url = f"{self.world.origin}/flow"
        record = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "applicationUrl": url}
        path, body, key = "/connect/flows", {"domain": domain, "power": True, "dnsRecords": [record]}, str(uuid.uuid4())
        status, flow = await self._ask("POST", path, body, key=key)
        while status != 201 and self.history.now < operation.began + _FLOW_SECONDS:
            await asyncio.sleep(_RETRY_SECONDS)
            status, flow = await self._ask("POST", path, body, key=key)
        while status == 201 and self.history.now < operation.began + _FLOW_SECONDS:
            await asyncio.sleep(_FLOW_PAUSE_SECONDS)
            seen, shown = await self._ask("GET", f"{path}/{flow['id']}")
            if seen == 404:
                break
            operation.value = shown.get("state", operation.value)
            if seen == 200 and operation.value == "planned":
                digest = shown["plan"]["digest"]
                await self._ask("POST", f"{path}/{flow['id']}/apply", {"way": "manual", "digest": digest})
            elif seen == 200 and operation.value == "finished":
                self.history.end(write, "ok", "POST by a flow")
                self.history.end(operation, "ok")
                return
        self.history.end(write, "unknown", "by a flow")
        self.history.end(operation, "failed", f"{status} {flow}")

    async def _read(self, domain: str) -> None:
        operation = self.history.begin("partner", "read", domain)
        await self.read(operation)

    async def read(self, operation: Operation) -> None:
        """Read the domain's application at the API."""
        status, answer = await self._ask("GET", f"/power?domain={operation.domain}")
        if status == 200:
            operation.value = answer["applicationUrl"].rpartition("/")[2] or None
            self.history.end(operation, "ok")
        else:
            self.history.end(operation, "failed", f"{status} {answer}")

    async def _ask(self, method: str, path: str, body: Any = None, *, key: str = "") -> tuple[int, dict[str, Any]]:
        """Send a request; status 0 for one that was not answered by the API."""
        try:
            return await self.world.partner.ask(method, path, body, key=key)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return 0, {"error": f"{type(error).__name__} {error}"}

    # Visitors ---------------------------------------------------------------------------------------------

    def _visitor(self, edge: RoleMachine) -> aiohttp.ClientSession:
        """Open a session that connects to this edge anew for each request, and trusts Pebble's root."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=OneAddressResolver(edge.machine.address),
                ssl=ssl.create_default_context(cafile=str(self.world.ca_file)),
                force_close=True,
                use_dns_cache=False,
            ),
            timeout=aiohttp.ClientTimeout(total=_VISIT_SECONDS),
        )

    async def _visit_all(self, edge: RoleMachine) -> None:
        """Visit every domain at one edge, in turn, until it is quiet."""
        async with self._visitor(edge) as session:
            while not self.quiet.is_set():
                for domain in (*self.steady, *self.churned[-CHURNING:]):
                    await self._visit(session, edge, domain)
                    await asyncio.sleep(_VISIT_PAUSE_SECONDS)

    async def visit_once(self, edge: RoleMachine, domain: str) -> Operation:
        """Visit a domain at an edge."""
        async with self._visitor(edge) as session:
            return await self._visit(session, edge, domain)

    async def _visit(self, session: aiohttp.ClientSession, edge: RoleMachine, domain: str) -> Operation:
        operation = self.history.begin(edge.name, "visit", domain)
        url = f"https://{domain}:{edge.process.settings.edge_https.port}/"
        try:
            async with session.get(url, allow_redirects=False) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.history.end(operation, "failed", f"{type(error).__name__} {error}")
            return operation
        if answer.status == 200:
            operation.value = text.split("/")[1]
            self.history.end(operation, "ok")
        elif answer.status in _NOT_SERVED:
            self.history.end(operation, "refused", f"{answer.status}")
        else:
            self.history.end(operation, "failed", f"{answer.status} {text[:80]}")
        return operation

    async def _watch_readiness(self, edge: RoleMachine) -> None:
        """Ask the edge twice a second whether it is ready."""
        url = f"http://{edge.process.settings.edge_admin}/readyz"
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session:
            while not self.quiet.is_set():
                operation = self.history.begin(edge.name, "ready", "")
                try:
                    async with session.get(url) as answer:
                        self.history.end(operation, "ok" if answer.status == 200 else "refused", f"{answer.status}")
                except (aiohttp.ClientError, TimeoutError):
                    self.history.end(operation, "failed")
                await asyncio.sleep(0.5)
