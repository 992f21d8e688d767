"""What the kernel tells of a peer that is not read from."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from edge.transport.disconnect import _READ_BYTES, client_disconnected

BODY = b"x" * 10_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as peer,
        listening.accept()[0] as ours,
    ):
        yield peer, ours


def settle(ours: socket.socket) -> None:
    """Until the peer's bytes, and what follows them at once, are here."""
    assert ours.recv(len(BODY), socket.MSG_PEEK | socket.MSG_WAITALL) == BODY


def test_who_only_falls_silent_has_not_left(pair: tuple[socket.socket, socket.socket]) -> None:
    peer, ours = pair
    assert not client_disconnected(ours, 1 << 40)
    peer.sendall(BODY)
    settle(ours)
    assert not client_disconnected(ours, 1 << 40)


def test_a_reset_tells_whatever_is_missing(pair: tuple[socket.socket, socket.socket]) -> None:
    peer, ours = pair
    peer.sendall(BODY)
    settle(ours)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    assert client_disconnected(ours, 0)


def test_a_fin_tells_if_what_waits_cannot_be_all(pair: tuple[socket.socket, socket.socket]) -> None:
    peer, ours = pair
    peer.sendall(BODY)
    settle(ours)
    peer.shutdown(socket.SHUT_WR)
    assert not client_disconnected(ours, 0)
    assert not client_disconnected(ours, len(BODY) + _READ_BYTES)  # some may be on its way through TLS
    assert client_disconnected(ours, len(BODY) + _READ_BYTES + 1)


def test_a_socket_that_is_gone_has_nobody(pair: tuple[socket.socket, socket.socket]) -> None:
    _, ours = pair
    ours.close()
    assert client_disconnected(ours, 0)
