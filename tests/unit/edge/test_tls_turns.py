"""What a TLS connection does in one turn of the loop, however much its peer makes the engine work."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from edge.transport.deferred_work import DeferredWork
from edge.transport.tls_stream import SLICE_BYTES, TlsStream
from tests.tls_parts import the_ca
from tests.tls_records import HANDSHAKE, TICKET, RecordWriter

READ_BYTES = 262_144  # what the loop reads at once


class Turns:
    """Stands in for `DeferredWork`: `run` takes the turns one by one."""

    def __init__(self) -> None:
        self._queue: list[Callable[[], None]] = []

    def add(self, work: Callable[[], None]) -> None:
        self._queue.append(work)

    def run(self) -> Iterator[None]:
        while self._queue:
            self._queue.pop(0)()
            yield


class Raw:
    """A transport that drops what is written."""

    def write(self, data: bytes) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Received(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


class Established:
    """A stream behind its handshake, of an edge that is the server or the client, and what writes its peer's records.

    `turns` are the bytes that the engine got in each turn.
    """

    def __init__(self, directory: Path, *, is_server: bool) -> None:
        key_log, certificate = directory / "keys", directory / "certificate"
        chain, key = the_ca().issue("a.example")
        certificate.write_bytes(chain.encode() + key)
        context = the_ca().client_context()
        context.keylog_filename = str(key_log)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(certificate)
        serving.num_tickets = 0
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(to_client, to_server, server_hostname="a.example")
        server = serving.wrap_bio(to_server, to_client, server_side=True)
        assert [_shake(end) for end in (client, server, client, server)] == [False, False, True, True]
        engine, incoming, outgoing = (server, to_server, to_client) if is_server else (client, to_client, to_server)
        side = "CLIENT_TRAFFIC_SECRET_0" if is_server else "SERVER_TRAFFIC_SECRET_0"
        self.writer = RecordWriter(key_log, side)
        self.inner = Received()
        self.turns: list[int] = []
        self._deferred = Turns()
        loop, raw = cast("asyncio.AbstractEventLoop", None), cast("asyncio.Transport", Raw())
        deferred = cast("DeferredWork", cast("Any", self._deferred))
        self._stream = TlsStream(loop, raw, engine, incoming, outgoing, "a.example", deferred)
        self._stream.begin(self.inner, b"")
        self._feed, self._stream._feed = self._stream._feed, self._count
        self._fed = 0

    def receive(self, data: bytes) -> None:
        for begin in range(0, len(data), READ_BYTES):
            self._fed = 0
            self._stream.data_received(data[begin : begin + READ_BYTES])
            self.turns.append(self._fed)
            self._fed = 0
            for _ in self._deferred.run():
                self.turns.append(self._fed)
                self._fed = 0

    def _count(self, data: Any) -> int:
        self._fed += len(data)
        return self._feed(data)


def _shake(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


@pytest.mark.parametrize("is_answered", [False, True])
@pytest.mark.parametrize("is_server", [False, True])
def test_key_updates_by_the_thousand_are_read_a_few_a_turn(tmp_path: Path, is_server: bool, is_answered: bool) -> None:
    here = Established(tmp_path, is_server=is_server)
    updates = b"".join(here.writer.key_update(is_answered=is_answered) for _ in range(4_000))
    here.receive(updates + here.writer.record(b"behind them"))
    assert here.inner.data == b"behind them"
    assert max(here.turns) <= 1024


def test_few_data_between_key_updates_do_not_buy_a_longer_turn(tmp_path: Path) -> None:
    here = Established(tmp_path, is_server=True)
    parts = [here.writer.key_update(is_answered=False) + here.writer.record(b"x") for _ in range(2_000)]
    here.receive(b"".join(parts))
    assert here.inner.data == b"x" * 2_000
    assert max(here.turns) <= 1024


def test_tickets_of_an_origin_are_read_a_slice_a_turn(tmp_path: Path) -> None:
    here = Established(tmp_path, is_server=False)
    tickets = b"".join(here.writer.record(TICKET * 600, HANDSHAKE) for _ in range(10))
    here.receive(tickets + here.writer.record(b"x"))
    assert here.inner.data == b"x"
    assert max(here.turns) <= SLICE_BYTES


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 4_096])
def test_records_are_followed_however_they_arrive(tmp_path: Path, piece_bytes: int) -> None:
    here = Established(tmp_path, is_server=True)
    parts = [here.writer.record(b"%d," % n * (n % 90)) + here.writer.key_update(is_answered=True) for n in range(1, 80)]
    data = b"".join(parts)
    for begin in range(0, len(data), piece_bytes):
        here.receive(data[begin : begin + piece_bytes])
    assert here.inner.data == b"".join(b"%d," % n * (n % 90) for n in range(1, 80))


def test_records_of_any_size_are_read_whole_one_a_read_or_cut_anywhere(tmp_path: Path) -> None:
    here, rng = Established(tmp_path, is_server=True), Random(29)
    sent = b""
    for _ in range(300):
        content = rng.randbytes(rng.choice((0, 1, 2, rng.randrange(2_000), rng.randrange(SLICE_BYTES + 1))))
        record = here.writer.record(content)
        cut = rng.choice((0, rng.randrange(len(record))))
        for piece in (record[:cut], record[cut:]):
            if piece:
                here.receive(piece)
        sent += content
    assert here.inner.data == sent


def test_short_reads_of_key_updates_take_many_turns_too(tmp_path: Path) -> None:
    here = Established(tmp_path, is_server=True)
    updates = b"".join(here.writer.key_update(is_answered=False) for _ in range(500))
    for begin in range(0, len(updates), 16_000):  # each read shorter than a slice, most begin within a record
        here.receive(updates[begin : begin + 16_000])
    assert max(here.turns) <= 1024


def test_whole_records_of_data_are_read_together(tmp_path: Path) -> None:
    here = Established(tmp_path, is_server=True)
    here.receive(b"".join(here.writer.record(b"x" * 16_000) for _ in range(16)))
    assert here.inner.data == b"x" * 256_000
    assert here.turns[0] > 8 * SLICE_BYTES
