"""One attempt against receivers of every kind: slow, huge, redirecting, broken, and where we must not go."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web

from api.rules.application_tokens import mint_webhook_secret
from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.sink import ReceivedRequest, WebhookSink
from bench.lab.zone import Zone
from common.addresses import AddressPolicy
from common.dns import Resolver
from common.host_ports import HostPort
from monitor.webhooks.sender import SHOWN_CHARS, Sender, WebhookResponse
from monitor.webhooks.signing import signed_headers
from tests import tls_parts
from tests.waiting import never

PAGE = Path(__file__).parents[2] / "api/handbook/webhooks.md"
LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
OPEN = AddressPolicy(LOOPBACK, ())
STRICT = AddressPolicy((), ())
BODY = b'{"id":"evt_1"}'


def a_sender(
    server: NameServer, policy: AddressPolicy = OPEN, *, tls: ssl.SSLContext | None = None, timeout_seconds: float = 5.0
) -> Sender:
    resolver = Resolver([HostPort(server.host, server.port)], OPEN)
    return Sender(resolver, policy, tls=tls, timeout_seconds=timeout_seconds)


async def post(sender: Sender, url: str) -> WebhookResponse:
    return await sender.post(url, BODY, {"webhook-id": "evt_1"})


async def test_body_and_headers_arrive_as_given(sink: WebhookSink, server: NameServer) -> None:
    answer = await post(a_sender(server), f"{sink.url}/hooks/%7Ea?token=x%2Fy")
    assert answer == WebhookResponse(204, None)
    [delivery] = sink.deliveries
    assert delivery.body.encode() == BODY
    assert delivery.headers["webhook-id"] == "evt_1"
    assert delivery.headers["content-type"] == "application/json"
    assert delivery.path == "/hooks/~a"  # as aiohttp decodes it


async def test_name_is_looked_up_and_sent_as_host(sink: WebhookSink, server: NameServer) -> None:
    server.zone.add("hooks.partner.test", "A", "127.0.0.1")
    port = sink.url.rpartition(":")[2]
    assert (await post(a_sender(server), f"http://hooks.partner.test:{port}/")).error is None
    assert sink.deliveries[0].headers["host"] == f"hooks.partner.test:{port}"


async def test_ipv6_is_spoken(server: NameServer) -> None:
    async with WebhookSink.serve("::1") as sink:
        assert sink.url.startswith("http://[::1]:")
        assert (await post(a_sender(server), sink.url + "/")).error is None
        server.zone.add("six.partner.test", "AAAA", "::1")
        port = sink.url.rpartition(":")[2]
        assert (await post(a_sender(server), f"http://six.partner.test:{port}/")).error is None
        assert len(sink.deliveries) == 2


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
async def test_other_statuses_are_failures_and_retry_after_is_told(
    sink: WebhookSink, server: NameServer, status: int
) -> None:
    sink.answer_with(status, {"Retry-After": "7"})
    assert await post(a_sender(server), sink.url) == WebhookResponse(status, f"answered {status}", "7")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_failures_and_nobody_follows_them(
    sink: WebhookSink, server: NameServer, status: int
) -> None:
    async with WebhookSink.serve() as elsewhere:
        sink.answer_with(status, {"Location": elsewhere.url + "/"})
        assert await post(a_sender(server), sink.url) == WebhookResponse(status, "redirects are not followed")
        assert elsewhere.deliveries == []
    assert len(sink.deliveries) == 1


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "hooks.localhost",
        "private.partner.test",
        "private6.partner.test",
        "169.254.169.254",
    ],
)
async def test_private_addresses_are_refused_before_a_socket_is_made(
    sink: WebhookSink, server: NameServer, host: str
) -> None:
    server.zone.add("private.partner.test", "A", "127.0.0.1")
    server.zone.add("private6.partner.test", "AAAA", "::ffff:127.0.0.1")
    port = sink.url.rpartition(":")[2]
    answer = await post(a_sender(server, STRICT), f"http://{host}:{port}/")
    assert answer.status is None
    assert answer.error in ("its address is none that webhooks may be sent to", "its name has no address")
    assert "127" not in answer.error
    assert sink.deliveries == []


async def test_our_own_listeners_are_refused_even_where_loopback_is_allowed(
    sink: WebhookSink, server: NameServer
) -> None:
    host, _, port = sink.url.removeprefix("http://").partition(":")
    answer = await post(a_sender(server, AddressPolicy(LOOPBACK, [(host, int(port))])), sink.url)
    assert answer.error == "its address is none that webhooks may be sent to"
    assert sink.deliveries == []


async def test_of_several_addresses_only_those_allowed_are_dialled(sink: WebhookSink, server: NameServer) -> None:
    """The name has ten private addresses beside the one that may be dialled."""
    for last in range(2, 12):
        server.zone.add("mixed.partner.test", "A", f"127.0.0.{last}")
    server.zone.add("mixed.partner.test", "A", "127.0.0.1")
    policy = AddressPolicy([ip_network("127.0.0.1/32")], ())
    port = sink.url.rpartition(":")[2]
    assert (await post(a_sender(server, policy), f"http://mixed.partner.test:{port}/")).error is None


async def test_address_checked_is_the_address_dialled(sink: WebhookSink, server: NameServer) -> None:
    """A name that turns to a private address between the check and the connection (DNS rebinding) is asked once."""
    server.zone.add("turns.partner.test", "A", "127.0.0.1")
    policy = _TurningPolicy(server.zone)
    port = sink.url.rpartition(":")[2]
    assert (await post(a_sender(server, policy), f"http://turns.partner.test:{port}/")).error is None
    assert len(sink.deliveries) == 1
    assert set(policy.asked) == {"127.0.0.1"}


class _TurningPolicy(AddressPolicy):
    """Allows loopback, and turns the name the moment its address was allowed."""

    def __init__(self, zone: Zone) -> None:
        super().__init__([ip_network("127.0.0.1/32")], ())
        self._zone = zone
        self.asked: list[str] = []

    def check(self, address, port):  # type: ignore[no-untyped-def]
        self.asked.append(str(address))
        super().check(address, port)
        self._zone.remove("turns.partner.test")
        self._zone.add("turns.partner.test", "A", "127.0.0.9")


async def test_unknown_name_and_silent_name_server_are_told_apart(server: NameServer) -> None:
    assert (await post(a_sender(server), "http://nobody.partner.test/")).error == "its name has no address"
    resolver = Resolver([HostPort("127.0.0.1", 9)], OPEN)
    answer = await Sender(resolver, OPEN).post("http://nobody.partner.test/", BODY, {})
    assert answer.error == "its name could not be looked up"


async def test_receiver_that_never_answers_is_left_in_time(sink: WebhookSink, server: NameServer) -> None:
    async def hang(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        await never()

    sink.answer_by(hang)
    assert await post(a_sender(server, timeout_seconds=0.3), sink.url) == WebhookResponse(
        None, "no answer within 0.3 seconds"
    )


async def test_head_that_drips_is_left_in_time(server: NameServer) -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(1000):
            writer.write(b"x-%d: y\r\n" % number)
            await asyncio.sleep(0.05)

    async with _raw(drip) as url:
        assert (await post(a_sender(server, timeout_seconds=0.4), url)).error == "no answer within 0.4 seconds"


async def test_success_counts_though_its_body_never_ends(sink: WebhookSink, server: NameServer) -> None:
    sent = 0

    async def flood(request: web.Request, _: ReceivedRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65_536)
                sent += 65_536
        return response

    sink.answer_by(flood)
    async with asyncio.timeout(5):
        assert await post(a_sender(server), sink.url) == WebhookResponse(200, None, body="x" * SHOWN_CHARS)
    assert sent < 16 * 2**20  # what sockets hold; nobody read on


async def test_success_counts_though_its_body_drips(sink: WebhookSink, server: NameServer) -> None:
    async def drip(request: web.Request, _: ReceivedRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.05)
        return response

    sink.answer_by(drip)
    async with asyncio.timeout(4):
        answer = await post(a_sender(server), sink.url)
    assert (answer.status, answer.error) == (200, None)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"", None),
        ("Schlüssel fehlt\n".encode(), "Schlüssel fehlt"),
        (b"\x00\xff\x1b[31m", "\ufffd\ufffd\ufffd[31m"),
        ("é".encode() * 4000, "é" * SHOWN_CHARS),
    ],
)
async def test_the_beginning_of_an_answer_is_kept_as_text(
    sink: WebhookSink, server: NameServer, sent: bytes, shown: str | None
) -> None:
    async def answer(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        return web.Response(status=500, body=sent)

    sink.answer_by(answer)
    assert await post(a_sender(server), sink.url) == WebhookResponse(500, "answered 500", body=shown)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 2",
        b"",
    ],
)
async def test_answers_that_are_no_http_are_failures(server: NameServer, answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with _raw(say) as url:
        assert await post(a_sender(server), url) == WebhookResponse(None, "the answer was no valid HTTP, or broke off")


async def test_closed_port_is_a_failure(server: NameServer) -> None:
    async with _raw(None) as url:
        pass
    assert await post(a_sender(server), url) == WebhookResponse(None, "no connection could be made")


async def test_certificate_is_verified(server: NameServer, tmp_path: Path) -> None:
    server.zone.add("tls.partner.test", "A", "127.0.0.1")
    chain, key = tls_parts.the_ca().issue("tls.partner.test")
    (tmp_path / "both.pem").write_bytes(chain.encode() + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "both.pem")
    async with _secure_receiver(context) as port:
        url = f"https://tls.partner.test:{port}/"
        assert (await post(a_sender(server), url)).error == (
            "TLS failed: its certificate may be invalid, expired or for another name"
        )
        assert (await post(a_sender(server, tls=tls_parts.the_ca().client_context()), url)).error is None


async def test_readmes_receiver_takes_what_is_ours_and_nothing_else(server: NameServer, tmp_path: Path) -> None:
    secret, port = mint_webhook_secret(), free_ports(1)[0]
    (tmp_path / "receiver.py").write_text(
        readme("<!-- webhook verifier: python -->") + readme("<!-- receiver -->").replace("9000", str(port))
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(tmp_path / "receiver.py"),
        secret,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        url, sender = f"http://127.0.0.1:{port}/", a_sender(server)
        async with asyncio.timeout(20):
            while (await post(sender, url)).status is None:  # until it listens; unsigned, so it answers 400
                pass
            assert process.stdout is not None
            assert await process.stdout.readline() == b"not ours\n"
            signed = signed_headers("evt_1", BODY, [secret], datetime.now(UTC))
            assert await sender.post(url, BODY, signed) == WebhookResponse(204, None)
            assert await process.stdout.readline() == BODY + b"\n"
    finally:
        process.kill()
        await process.communicate()


def readme(mark: str) -> str:
    printed = re.search(rf"{re.escape(mark)}\n```\w+\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert printed is not None
    return printed[1] + "\n\n"


@contextlib.asynccontextmanager
async def _secure_receiver(tls: ssl.SSLContext) -> AsyncIterator[int]:
    async def receive(_: web.Request) -> web.Response:
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/", receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _raw(talk) -> AsyncIterator[str]:  # type: ignore[no-untyped-def]
    """A receiver that speaks as `talk` does, then closes."""
    talking: set[asyncio.Task[None]] = set()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
