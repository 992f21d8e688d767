"""TLS, its ends: close_notify, lingering, resets, damaged records, renegotiation."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from edge.transport.lingering import ROUND_SECONDS
from edge.transport.tls_stream import SLICE_BYTES, TlsStream
from tests.component.tls_peers import (
    TLS12,
    TLS13,
    HalfClosed,
    RawClient,
    Silent,
    connection,
    edge,
    in_thread,
    raw_connection,
    receive,
    reset,
)
from tests.tls_parts import the_ca
from tests.waiting import until


@pytest.mark.parametrize("with_fin", [False, True])
@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_close_from_the_client_ends_reading_not_the_response(version: ssl.TLSVersion, with_fin: bool) -> None:
    async with edge(HalfClosed) as here:
        client = await in_thread(lambda: RawClient(here.port, version))

        def send() -> None:
            client.engine.write(b"request")
            client.say_close_notify()
            if with_fin:
                client.socket.shutdown(socket.SHUT_WR)

        await in_thread(send)
        await until(lambda: bool(here.inners) and here.inners[0].events == ["made", "eof"])
        inner = here.inners[0]
        assert inner.received == b"request"
        inner.transport.write(b"x" * 100_000)
        inner.transport.close()
        assert await in_thread(lambda: client.receive(100_000)) == b"x" * 100_000
        client.socket.close()
        await until(lambda: inner.events == ["made", "eof", "lost"])


async def test_closing_says_close_notify_after_everything_written() -> None:
    class Answering(Silent):
        def on_data(self, data: bytes) -> None:
            self.transport.write(b"y" * 1_000_000)
            self.transport.close()
            self.transport.close()
            self.transport.write(b"too late")

    async with edge(Answering) as here:
        client = await in_thread(lambda: connection(here.port))
        with client:
            await in_thread(lambda: client.sendall(b"go"))
            assert await in_thread(lambda: receive(client, 1_000_000)) == b"y" * 1_000_000
            # `SSLSocket.recv` would hide a missing close_notify; the object below it does not.
            assert await in_thread(lambda: client._sslobj.read(1)) == b""  # type: ignore[attr-defined]
        await until(lambda: here.inners[0].events == ["made", "lost"])


@pytest.mark.parametrize("end", [TlsStream.close, TlsStream.linger])
@pytest.mark.parametrize("size", [1024, 16_384, 16_385])
async def test_a_last_answer_leaves_together_with_close_notify(end: Callable[[TlsStream], None], size: int) -> None:
    written: list[int] = []

    class Answering(Silent):
        def on_data(self, data: bytes) -> None:
            stream = self.transport
            write = stream._raw_write

            def record(data: bytes | bytearray | memoryview) -> None:
                written.append(len(data))
                write(data)

            stream._raw_write = record
            stream.write_last(b"y" * size)
            assert stream.get_write_buffer_size() > size or size > SLICE_BYTES  # it tells how much is yet to leave
            end(stream)

    async with edge(Answering) as here:
        client = await in_thread(lambda: connection(here.port))
        with client:
            await in_thread(lambda: client.sendall(b"go"))
            assert await in_thread(lambda: receive(client, size)) == b"y" * size
            assert await in_thread(lambda: client._sslobj.read(1)) == b""  # type: ignore[attr-defined]
        await until(lambda: here.inners[0].events == ["made", "lost"])
    assert len(written) == 1
    assert (written[0] > size) == (size <= SLICE_BYTES)  # what is more than one record goes first


async def test_who_still_sends_reads_the_answer_of_one_who_lingers() -> None:
    class Answering(Silent):
        def on_data(self, data: bytes) -> None:
            self.transport.write(b"y" * 100_000)
            self.transport.linger()

    async with edge(Answering) as here:
        client = await in_thread(lambda: connection(here.port))
        with client:
            for _ in range(8):  # after the first of them nothing is taken up any more
                await in_thread(lambda: client.sendall(b"go on" * 1000))
            assert await in_thread(lambda: receive(client, 100_000)) == b"y" * 100_000
        await until(lambda: here.inners[0].events == ["made", "lost"])


class EarlyAnswer(Silent):
    """Answers before the request's body has come, and takes up nothing after it."""

    round_seconds = ROUND_SECONDS

    def on_data(self, data: bytes) -> None:
        self.transport.write_last(
            b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"
        )
        self.transport.linger(round_seconds=self.round_seconds)


async def test_curl_reads_an_early_answer_while_it_sends_100_megabytes(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(the_ca().pem)
    with (tmp_path / "body").open("wb") as body:
        body.truncate(100_000_000)
    async with edge(EarlyAnswer) as here:
        command = ["curl", "-s", "--cacert", str(tmp_path / "ca.pem"), "--resolve", f"a.example:{here.port}:127.0.0.1"]
        command += ["-H", "Expect:", "-T", str(tmp_path / "body"), f"https://a.example:{here.port}/"]
        for _ in range(6):
            done = await in_thread(lambda: subprocess.run(command, capture_output=True, timeout=20, check=False))
            assert (done.returncode, done.stdout) == (0, b"too large")


async def test_a_client_that_reads_only_after_its_upload_gets_the_answer() -> None:
    class Patient(EarlyAnswer):
        round_seconds = 0.1

    async with edge(Patient) as here:

        def upload_then_read() -> bytes:
            with connection(here.port) as client:
                ends_at = time.perf_counter() + 0.5
                while time.perf_counter() < ends_at:
                    client.sendall(bytes(65536))
                return receive(client, 12)

        assert await in_thread(upload_then_read) == b"HTTP/1.1 413"


async def test_a_client_that_sends_for_ever_is_cut_off() -> None:
    class Impatient(EarlyAnswer):
        round_seconds = 0.02

    async with edge(Impatient) as here:

        def upload_for_ever() -> None:
            with connection(here.port) as client:
                while True:
                    client.sendall(bytes(65536))

        with pytest.raises(OSError, match=r"reset|pipe|EOF"):
            await in_thread(upload_for_ever)


async def test_lingering_is_bounded_when_the_client_never_ends() -> None:
    class Closing(Silent):
        def on_data(self, data: bytes) -> None:
            self.transport.write(b"z" * 8_000_000)  # more than the kernel takes
            self.transport.linger(round_seconds=0.05)

    async with edge(Closing) as here:
        client = await in_thread(lambda: connection(here.port))
        with client:
            await in_thread(lambda: client.sendall(b"go"))
            await until(lambda: here.inners[0].events == ["made", "lost"])


async def test_a_reset_is_told_once() -> None:
    async with edge() as here:
        client = await in_thread(lambda: connection(here.port))
        await in_thread(lambda: client.sendall(b"hello"))
        await until(lambda: bool(here.inners and here.inners[0].received))
        reset(client)
        await until(lambda: "lost" in here.inners[0].events)
        here.inners[0].transport.write(b"nobody there")
        here.inners[0].transport.close()
        here.inners[0].transport.abort()


async def test_damaged_records_end_the_connection_with_an_alert() -> None:
    async with edge() as here:
        client = await in_thread(lambda: RawClient(here.port))
        client.socket.sendall(b"\x17\x03\x03\x00\x20" + b"?" * 32)
        with pytest.raises(ssl.SSLError, match=r"(?i)bad record mac"):
            await in_thread(lambda: client.receive(1))
        client.socket.close()
        await until(lambda: here.inners[0].events == ["made", "lost"])
        assert isinstance(here.inners[0].error, ssl.SSLError)


@contextmanager
def s_client(port: int, version: str, words: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """openssl's client, which takes commands of one letter on a line of their own."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "a.example", version]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(words)
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[bytes], words: bytes) -> None:
    output = b""
    while words not in output:
        assert process.stdout is not None
        part = process.stdout.read(4096)
        assert part, output
        output += part


async def test_key_updates_are_answered() -> None:
    async with edge(Silent) as here:
        with s_client(here.port, "-tls1_3", b"K\n") as client:
            await in_thread(lambda: read_until(client, b"KEYUPDATE"))
            assert client.stdin is not None
            client.stdin.write(b"after the update\n")
            await until(lambda: any(b"after the update" in inner.received for inner in here.inners))
            assert here.inners[0].transport._outgoing.pending == 0


async def test_renegotiation_is_refused() -> None:
    async with edge(Silent) as here:
        with s_client(here.port, "-tls1_2", b"R\n") as client:
            await in_thread(lambda: read_until(client, b"no renegotiation"))
        assert here.tls.counters.handshakes == 1


async def test_a_client_that_makes_the_engine_talk_and_never_listens_is_cut_off() -> None:
    class Full(Silent):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.transport.write(b"x" * 8_000_000)  # more than the kernel takes: the raw transport is full

    async with edge(Full) as here:
        with s_client(here.port, "-tls1_3", b"") as client:
            await until(lambda: bool(here.inners) and here.inners[0].is_full)
            stream = here.inners[0].transport
            stream._encrypt(b"as if a key update had been answered")
            stream.data_received(b"")
            await until(lambda: "lost" in here.inners[0].events)
            assert client.poll() is None


async def test_the_end_of_input_right_behind_the_handshake_waits_for_the_flight_before_it() -> None:
    """One segment holds the client's last flight, its first bytes and its end."""

    class Answering(HalfClosed):
        def on_data(self, data: bytes) -> None:
            self.transport.write(b"answer")

    def converse(port: int) -> bytes:
        client = RawClient.__new__(RawClient)
        context = the_ca().client_context()
        client.socket = raw_connection(port)
        client.incoming, client.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client.engine = context.wrap_bio(client.incoming, client.outgoing, server_hostname="a.example")
        with suppress(ssl.SSLWantReadError):
            client.engine.do_handshake()
        client.flush()
        while True:
            client.incoming.write(client.socket.recv(65_536))
            with suppress(ssl.SSLWantReadError):
                client.engine.do_handshake()
                break
        client.engine.write(b"question")
        client.flush()
        client.socket.shutdown(socket.SHUT_WR)
        with client.socket:
            return client.receive(6)

    async with edge(Answering) as here:
        assert await in_thread(lambda: converse(here.port)) == b"answer"
