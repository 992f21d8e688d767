"""A CA that fails on purpose: an HTTPS proxy in front of Pebble that breaks, delays and refuses requests on demand.

Pebble names its resources after the Host of the request, so behind this proxy every URL in its answers points here. It
also serves what Debian's Pebble does not: renewal information (RFC 9773), for certificates that a test registers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import aiohttp
from aiohttp import web

from bench.lab.pebble import Pebble

Step = Literal[
    "directory",
    "nonce",
    "account",
    "new order",
    "order",
    "authorization",
    "challenge",
    "finalize",
    "certificate",
    "revocation",
    "renewal information",
    "other",
]

# By the first segment of a path, as Pebble names them.
_STEPS: Mapping[str, Step] = {
    "dir": "directory",
    "nonce-plz": "nonce",
    "sign-me-up": "account",
    "order-plz": "new order",
    "my-order": "order",
    "authZ": "authorization",
    "chalZ": "challenge",
    "finalize-order": "finalize",
    "certZ": "certificate",
    "revoke-cert": "revocation",
    "renewal-info": "renewal information",
}
_HOP_FIELDS = frozenset({"connection", "content-length", "transfer-encoding", "date"})


@dataclass(slots=True)
class CaFault:
    """What goes wrong at a step, for its next `times` requests, after `spared` of them went well.

    `drop` breaks the connection before Pebble hears of the request, or after it has acted on it; `status` answers in
    Pebble's place, with a problem of type `problem`, and `body` with something that is no answer; `headers` are added
    to any of these answers. `delay_seconds` and `released` hold the request back before all this.
    """

    step: Step
    times: int = 1
    spared: int = 0
    drop: Literal["before", "after", ""] = ""
    status: int = 0
    problem: str = "serverInternal"
    detail: str = "the lab wants it so"
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    released: asyncio.Event | None = None
    body: bytes = b""


class FaultyCa:
    """A CA that fails on purpose, before Pebble. Created by `faulty_ca`.

    `seen` counts the requests that Pebble was sent, by step; `answered` are the moments at which it answered otherwise
    than by refusing the nonce, as `time.monotonic` counts; `orders` are those that it has made.
    """

    def __init__(self, pebble: Pebble) -> None:
        self.pebble = pebble
        self.directory = ""
        self.faults: list[CaFault] = []
        self.seen: Counter[str] = Counter()
        self.answered: defaultdict[str, list[float]] = defaultdict(list)
        self.busy_seconds = 0.0
        self.orders: list[dict[str, Any]] = []
        self.windows: dict[str, tuple[datetime, datetime]] = {}
        self.offers_renewal_information = False
        self.meta: dict[str, Any] = {}  # members of its directory beside Pebble's own
        self.renewal_retry_after = 21_600
        self._session: aiohttp.ClientSession

    def fail(self, step: Step, **how: Any) -> None:
        """Meet the next requests of a step with a `CaFault`."""
        self.faults.append(CaFault(step, **how))

    def suggest(self, certificate_id: str, start: datetime, end: datetime) -> None:
        """Offer renewal information for one certificate."""
        self.offers_renewal_information = True
        self.windows[certificate_id] = start, end

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, by Pebble or by a fault."""
        step = _STEPS.get(request.path.split("/")[1], "other")
        body = await request.read()
        fault = self._next_fault(step)
        if fault is not None:
            await asyncio.sleep(fault.delay_seconds)
            if fault.released is not None:
                await fault.released.wait()
        if fault is not None and fault.drop == "before":
            return _drop(request)
        if fault is not None and fault.status:
            return _problem(fault)
        if fault is not None and fault.body:
            return web.Response(body=fault.body, headers=fault.headers)
        if step == "renewal information":
            return self._renewal_information(request.path.rpartition("/")[2])
        response = await self._forward(request, step, body)
        if _is_bad_nonce(response):  # Pebble refuses some nonces on purpose, and the same request comes again
            if fault is not None:
                fault.times += 1
            return response
        self.answered[step].append(time.monotonic())
        if fault is not None:
            if fault.drop == "after":
                return _drop(request)
            response.headers.update(fault.headers)
        return response

    def _next_fault(self, step: Step) -> CaFault | None:
        for fault in self.faults:
            if fault.step == step and fault.times:
                if fault.spared:
                    fault.spared -= 1
                    return None
                fault.times -= 1
                return fault
        return None

    async def _forward(self, request: web.BaseRequest, step: Step, body: bytes) -> web.Response:
        self.seen[step] += 1
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_FIELDS}
        url = self.pebble.directory.removesuffix("/dir") + request.path_qs
        asked_at = time.perf_counter()
        async with self._session.request(
            request.method, url, data=body, headers=headers, ssl=self.pebble.trust, allow_redirects=False
        ) as answer:
            content = await answer.read()
            self.busy_seconds += time.perf_counter() - asked_at
            if step == "new order" and answer.status == 201:
                self.orders.append(_payload(body))
            if step == "directory" and answer.status == 200:
                content = self._directory(content)
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_FIELDS}
            return web.Response(status=answer.status, body=content, headers=kept)

    def _directory(self, content: bytes) -> bytes:
        directory = json.loads(content)
        directory["meta"] |= self.meta
        directory.pop("renewalInfo", None)  # Pebble's own, from 2.5 on
        if self.offers_renewal_information:
            directory["renewalInfo"] = self.directory.removesuffix("/dir") + "/renewal-info"
        return json.dumps(directory).encode()

    def _renewal_information(self, certificate_id: str) -> web.Response:
        self.seen["renewal information"] += 1
        if certificate_id not in self.windows:
            return _problem(CaFault("renewal information", status=404, problem="malformed"))
        start, end = (moment.isoformat().replace("+00:00", "Z") for moment in self.windows[certificate_id])
        return web.json_response(
            {"suggestedWindow": {"start": start, "end": end}}, headers={"Retry-After": str(self.renewal_retry_after)}
        )


@asynccontextmanager
async def faulty_ca(pebble: Pebble) -> AsyncIterator[FaultyCa]:
    """Serve until the end of the block; trusted by the same file as Pebble."""
    ca = FaultyCa(pebble)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pebble.ca_file, pebble.ca_file.with_suffix(".key"))
    server = web.Server(ca.answer)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    async with aiohttp.ClientSession() as ca._session:
        await site.start()
        port = runner.addresses[0][1]
        ca.directory = f"https://127.0.0.1:{port}/dir"
        try:
            yield ca
        finally:
            await runner.cleanup()


def _drop(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:  # None where the client has gone meanwhile
        request.transport.abort()
    return web.Response()


def _is_bad_nonce(response: web.Response) -> bool:
    return response.status == 400 and b"acme:error:badNonce" in bytes(response.body)  # type: ignore[arg-type]


def _problem(fault: CaFault) -> web.Response:
    problem = {"type": f"urn:ietf:params:acme:error:{fault.problem}", "detail": fault.detail, "status": fault.status}
    return web.json_response(
        problem, status=fault.status, headers=fault.headers, content_type="application/problem+json"
    )


def _payload(jws: bytes) -> dict[str, Any]:
    payload: str = json.loads(jws)["payload"]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)) or "{}")
    return decoded
