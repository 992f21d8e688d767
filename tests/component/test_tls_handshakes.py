"""TLS, its handshakes: names, groups, alerts, and what is not TLS at all."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

import pytest

from edge.tls.failures import Failure
from edge.tls.layer import TlsLayer
from edge.tls.shared import TlsLimits
from tests.component.tls_peers import connection, edge, in_thread, raw_connection, receive, refusal, reset
from tests.tls_parts import client_hello, the_ca
from tests.waiting import until


@pytest.mark.parametrize(
    ("group", "is_taken"),
    [("X25519", True), ("prime256v1", True), ("secp384r1", True), ("secp521r1", True)]
    + [(f"ffdhe{bits}", False) for bits in (2048, 8192)],
)
async def test_keys_are_exchanged_on_curves_only(group: str, is_taken: bool) -> None:
    context = the_ca().client_context()
    context.set_ecdh_curve(group)
    async with edge() as here:

        def visit() -> None:
            connection(here.port, context=context).close()

        if is_taken:
            await in_thread(visit)
        else:
            with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
                await in_thread(visit)
            assert here.failed(Failure.NO_GROUP) == 1


@pytest.mark.parametrize("name", ["nobody.example", "x" * 60 + ".example"])
async def test_an_unknown_name_gets_an_alert_and_builds_nothing(name: str) -> None:
    async with edge() as here:
        assert await in_thread(lambda: refusal(here.port, name)) == "TLSV1_UNRECOGNIZED_NAME"
        assert here.failed(Failure.UNKNOWN_NAME) == 1
        assert here.tls.counters.context_builds == 0


async def test_no_name_gets_the_same_alert() -> None:
    async with edge() as here:

        def without_name() -> bytes:
            with raw_connection(here.port) as client:
                client.sendall(client_hello(None))
                return receive(client, 100)

        assert await in_thread(without_name) == b"\x15\x03\x03\x00\x02\x02\x70"
        assert here.failed(Failure.NO_NAME) == 1


async def test_upper_case_and_a_trailing_dot_find_the_domain() -> None:
    async with edge() as here:

        def odd_name() -> bytes:
            context = the_ca().client_context()
            context.check_hostname = False
            with connection(here.port, "A.Example.", context=context) as client:
                client.sendall(b"x")
                return receive(client, 1)

        assert await in_thread(odd_name) == b"x"
        assert here.inners[0].transport.get_extra_info("server_name") == "a.example"


async def test_a_client_that_speaks_only_http2_is_told_so() -> None:
    async with edge() as here:
        context = the_ca().client_context()
        context.set_alpn_protocols(["h2"])
        with pytest.raises(ssl.SSLError, match=r"(?i)no application protocol"):
            await in_thread(lambda: connection(here.port, context=context))


async def test_plain_http_is_told_that_this_port_speaks_https() -> None:
    async with edge() as here:

        def plain() -> bytes:
            with raw_connection(here.port) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n" + b"x" * 100_000)
                return receive(client, 100_000)

        answer = await in_thread(plain)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"https://" in answer
        assert here.failed(Failure.PLAIN_HTTP) == 1


async def test_junk_and_silence_are_closed_without_a_word() -> None:
    async with edge(limits=TlsLimits(handshake_seconds=0.1)) as here:

        def words(sent: bytes) -> bytes:
            with raw_connection(here.port) as client:
                client.sendall(sent)
                try:
                    return receive(client, 100)
                except ConnectionResetError:
                    return b""

        assert await in_thread(lambda: words(b"\0\0\0")) == b""
        assert await in_thread(lambda: words(b"")) == b""
        assert await in_thread(lambda: words(client_hello()[:50])) == b""
        assert here.failed(Failure.NOT_TLS) == 1
        assert here.failed(Failure.TIMEOUT) == 2
        assert here.tls.counters.handshaking == 0


async def test_a_client_that_leaves_in_the_middle_is_counted() -> None:
    async with edge() as here:
        leaving = raw_connection(here.port)
        leaving.sendall(client_hello())
        await in_thread(lambda: receive(leaving, 500))
        reset(leaving)
        await until(lambda: here.failed(Failure.CLIENT_LEFT) == 1)
        assert here.tls.counters.handshaking == 0


async def test_a_broken_second_flight_fails_in_the_engine() -> None:
    async with edge() as here:

        def broken() -> bytes:
            with raw_connection(here.port) as client:
                client.sendall(client_hello())
                receive(client, 500)
                client.sendall(b"\x16\x03\x03\x00\x05hello")
                while client.recv(65536):
                    pass
                return b"ended"

        assert await in_thread(broken) == b"ended"
        assert here.failed(Failure.ENGINE) == 1
        assert here.inners == []


async def test_bytes_read_earlier_are_fed_first() -> None:
    class Prefixed(asyncio.Protocol):
        """Reads one line, then leaves the connection to TLS."""

        def __init__(self, layer: TlsLayer) -> None:
            self.layer = layer
            self.read = b""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.read += data
            _, end, rest = self.read.partition(b"\r\n")
            if end:
                self.transport.set_protocol(self.layer)
                self.layer.connection_made(self.transport)
                self.layer.data_received(rest)

    async with edge(first=Prefixed) as here:

        def prefixed() -> bytes:
            outer = raw_connection(here.port)
            context = the_ca().client_context()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            engine = context.wrap_bio(incoming, outgoing, server_hostname="a.example")
            with outer:
                with pytest.raises(ssl.SSLWantReadError):
                    engine.do_handshake()
                outer.sendall(b"PROXY UNKNOWN\r\n" + outgoing.read())
                while True:
                    incoming.write(outer.recv(65536))
                    try:
                        engine.do_handshake()
                    except ssl.SSLWantReadError:
                        continue
                    break
                engine.write(b"hello")
                outer.sendall(outgoing.read())
                while True:
                    incoming.write(outer.recv(65536))
                    with suppress(ssl.SSLWantReadError):
                        return engine.read(100)

        assert await in_thread(prefixed) == b"hello"
