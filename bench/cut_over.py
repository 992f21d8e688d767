"""``python -m bench.cut_over``: domains move here from another vendor, while visitors send requests.

A proxy stands for the other vendor: it serves the domains with certificates of a CA of its own, and forwards to the
same origin. Each domain is prepared (`POST /domains/:domain/prepare`), its challenge is delegated, and then its DNS is
turned while requests are sent to all of them. Each request looks the domain up anew, verifies the certificate, and
counts as failed unless it is answered 200. Printed, and written to ``bench/output/cut_over.json``: failures (the goal:
0), how long after a delegation is seen every edge serves a domain (2 s), and how long after its DNS turned a domain is
active (60 s).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import dns.asyncquery
import dns.name
import dns.rdatatype
import dns.tsigkeyring
import dns.update
from aiohttp import web

from bench import output
from bench.demo.stage import CNAME_TARGET, ELSEWHERE, ELSEWHERE_ADDRESS, Stage
from bench.demo.walk_clients import PartnerClient
from bench.private_stage import private_stage
from common.clock import SystemClock
from common.db.address import resolve_dsn
from common.db.pool import open_pool
from common.host_ports import HostPort
from common.secrets import load_keyring
from monitor.certificates.internal import open_internal, root_path
from monitor.certificates.issuance import signing_request
from monitor.certificates.phases import Phases

_AT_ONCE = 8
_REQUEST_SECONDS = 30.0
_ACTIVE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


class CutOver:
    """One run: the visitors, the zone's owner and the partner. `served_by` counts requests by what happened."""

    def __init__(self, stage: Stage, vendor: HostPort, trust: ssl.SSLContext, domains: list[str]) -> None:
        host, _, port = stage.lab.dns.rpartition(":")
        self._dns = HostPort(host, int(port))
        self._stage = stage
        self._trust = trust
        self._routes = {
            ELSEWHERE_ADDRESS: vendor,
            "127.0.0.1": HostPort(stage.edge_https_host, stage.settings.edge_https.port),
        }
        self.domains = domains
        self.outcomes: Counter[str] = Counter()

    async def change(self, name: str, kind: str, value: str) -> None:
        """Set the name's records to this one, in one update of the zone (RFC 2136)."""
        key, _, secret = self._stage.lab.key.partition(":")
        update = dns.update.UpdateMessage(ELSEWHERE, keyring=dns.tsigkeyring.from_text({key: secret}))
        absolute = dns.name.from_text(name)
        update.delete(absolute)
        update.add(absolute, 1, kind, value)
        reply = await dns.asyncquery.tcp(update, self._dns.host, port=self._dns.port, timeout=_REQUEST_SECONDS)
        if reply.rcode():
            raise RuntimeError(f"the zone refused {name}: {reply.rcode()}")

    async def visit(self) -> None:
        """Send one request to one of the domains."""
        domain = random.choice(self.domains)
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                route = await self._look_up(domain)
                status = await _get(route, domain, self._trust)
        except (OSError, TimeoutError, EOFError) as error:
            self.outcomes["failed"] += 1
            print(f"failed: {domain}: {type(error).__name__}: {error}")
            return
        side = "here" if route.port == self._stage.settings.edge_https.port else "other vendor"
        self.outcomes[side if status == 200 else "failed"] += 1

    async def _look_up(self, domain: str) -> HostPort:
        query = dns.message.make_query(domain, "A")
        reply = await dns.asyncquery.udp(query, self._dns.host, port=self._dns.port, timeout=_REQUEST_SECONDS)
        addresses = [a.address for found in reply.answer if found.rdtype == dns.rdatatype.A for a in found]
        if not addresses:
            raise OSError(f"no address: {reply.to_text()}")
        return self._routes[addresses[0]]


async def _get(route: HostPort, domain: str, trust: ssl.SSLContext) -> int:
    reader, writer = await asyncio.open_connection(route.host, route.port, ssl=trust, server_hostname=domain)
    try:
        writer.write(f"GET / HTTP/1.1\r\nHost: {domain}\r\nConnection: close\r\n\r\n".encode())
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        await reader.read()
        return status
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def other_vendor(directory: Path, domains: list[str], origin: str) -> AsyncIterator[tuple[HostPort, Path]]:
    """Serve the domains as their vendor until now; yields its address and the root of its CA."""
    keyring = load_keyring(directory / "key", create=True)
    issuer = open_internal(directory, keyring, SystemClock())
    context = await _vendor_context(directory, issuer, domains)
    async with aiohttp.ClientSession() as session:

        async def forward(request: web.Request) -> web.Response:
            async with session.request(request.method, origin + request.path_qs) as answer:
                return web.Response(status=answer.status, body=await answer.read())

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            yield HostPort(host, port), root_path(directory)
        finally:
            await runner.cleanup()


async def _vendor_context(directory: Path, issuer: Any, domains: list[str]) -> ssl.SSLContext:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415

    contexts = {}
    for domain in domains:
        key = ec.generate_private_key(ec.SECP256R1())
        issued = await issuer.issue(domain, signing_request(domain, key), Phases(SystemClock()), None)
        pem = directory / f"{domain}.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        pem.write_bytes(issued.chain.encode() + secret)
        contexts[domain] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[domain].load_cert_chain(pem)

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = contexts[name or domains[0]]

    first = contexts[domains[0]]
    first.sni_callback = choose
    return first


async def run(requests: int, domains: int) -> dict[str, Any]:
    """Move the domains, and return the figures."""
    names = [f"shop-{number}.{ELSEWHERE}" for number in range(domains)]
    with TemporaryDirectory(prefix="frontage-bench-vendor-") as made:
        async with (
            private_stage() as stage,
            other_vendor(Path(made), names, stage.lab.origin) as (vendor, root),
            PartnerClient.at(stage.settings.base_url, stage.application_id) as partner,
        ):
            trust = ssl.create_default_context(cafile=stage.ca_file)
            trust.load_verify_locations(root)
            await partner.sign_in(stage.client_secret)
            move = CutOver(stage, vendor, trust, names)
            for name in names:
                await move.change(name, "A", ELSEWHERE_ADDRESS)
            await _prepare(move, partner, stage.lab.origin)
            turned = await _send_while_turning(move, requests)
            times = await _find_times(stage, partner, names)
    served = sorted(seconds for seconds, _ in times.values())
    active = sorted(times[name][1] - at for name, at in turned.items())
    return {
        "requests": requests,
        "domains": domains,
        "failed": move.outcomes["failed"],
        "by the other vendor": move.outcomes["other vendor"],
        "here": move.outcomes["here"],
        "served after delegation seen, seconds": {"median": served[len(served) // 2], "longest": served[-1]},
        "active after the turn, seconds": {"median": active[len(active) // 2], "longest": active[-1]},
    }


async def _prepare(move: CutOver, partner: PartnerClient, origin: str) -> None:
    body = {"product": "power", "applicationUrl": origin}
    for name in move.domains:
        answer = await partner.ask("POST", f"/domains/{name}/prepare", body)
        record = answer["records"][0]
        await move.change(record["host"], record["type"], f"{record['value']}.")
    await _await_state(partner, move.domains, "prepared")


async def _await_state(partner: PartnerClient, names: list[str], state: str) -> None:
    async with asyncio.timeout(_ACTIVE_SECONDS):
        for name in names:
            path = f"/domains/{name}/prepare"
            while (await partner.ask("GET", path))["state"] != state:  # noqa: ASYNC110 - another process
                await asyncio.sleep(_PAUSE_SECONDS)


async def _send_while_turning(move: CutOver, requests: int) -> dict[str, float]:
    """Send the requests; the middle three fifths of them while one domain after another is turned."""
    turned: dict[str, float] = {}
    step = requests * 3 // 5 // len(move.domains)
    left = iter(range(requests))

    async def visitor() -> None:
        for number in left:
            place, rest = divmod(number - requests // 5, step)
            if not rest and 0 <= place < len(move.domains):
                name = move.domains[place]
                await move.change(name, "CNAME", f"{CNAME_TARGET}.")
                turned[name] = time.time()
            await move.visit()

    await asyncio.gather(*(visitor() for _ in range(_AT_ONCE)))
    return turned


async def _find_times(stage: Stage, partner: PartnerClient, names: list[str]) -> dict[str, tuple[float, float]]:
    """Return, once all are active, how long each took to be served after its delegation, and when it became active."""
    async with asyncio.timeout(_ACTIVE_SECONDS):
        for name in names:
            while (await partner.eligibility(name))["powerStatus"] != "active":  # noqa: ASYNC110 - another process
                await asyncio.sleep(_PAUSE_SECONDS)
    async with (
        open_pool(resolve_dsn(stage.settings), size=1, application_name="bench") as database,
        database.connection() as connection,
    ):
        rows = await connection.fetch(
            "select domain, extract(epoch from prepared_at - delegated_at)::float8 as served_seconds,"
            " extract(epoch from active_at)::float8 as active_at from preparations"
        )
    return {row["domain"]: (row["served_seconds"], row["active_at"]) for row in rows}


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--domains", type=int, default=20)
    given = parser.parse_args()
    figures = asyncio.run(run(given.requests, given.domains))
    for name, value in figures.items():
        print(f"{name}: {value}")
    output.write("cut_over", figures)


if __name__ == "__main__":
    main()
