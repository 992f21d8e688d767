"""Leads all connections of a client's address to one listener of a SO_REUSEPORT group, and so to one worker.

The kernel's own choice hashes address and port: a client that returns comes to any worker, and a worker resumes only
the TLS sessions whose tickets it issued itself. This program hashes the address alone; of IPv6 its first 64 bits, which
are one client's. It is classic BPF that the kernel checks when it is attached, and it stays with the sockets.

It suits edges that see clients' own addresses. Where most connections come from a few addresses (a balancer, a
container's bridge), it would lead them to a few workers, so it is a setting, off by default.
"""

from __future__ import annotations

import array
import socket
import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from common.errors import OperatorError

_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # include/uapi/asm-generic/socket.h
# Opcodes of linux/filter.h; the program's operand is a word A, with X beside it.
_LOAD_BYTE, _LOAD_WORD, _TO_X, _XOR_X = 0x30, 0x20, 0x07, 0xAC
_MULTIPLY, _SHIFT_RIGHT, _MODULO = 0x24, 0x74, 0x94
_JUMP, _JUMP_IF_EQUAL, _RETURN = 0x05, 0x15, 0x16
_NETWORK_HEADER: Final = 0xFFF0_0000  # SKF_NET_OFF
_IPV4_SOURCE, _IPV6_SOURCE = _NETWORK_HEADER + 12, _NETWORK_HEADER + 8
# Odd, without a pattern: neighbouring addresses are far apart in the upper half of the product (Knuth 6.4).
_FACTOR, _OTHER_FACTOR = 0x9E37_79B1, 0x85EB_CA6B


def spread_by_address(listeners: Iterable[socket.socket]) -> None:
    """Spread the clients of each address that several of the listeners share.

    Raises: `OperatorError` where the kernel does not allow it.
    """
    groups: dict[object, list[socket.socket]] = defaultdict(list)
    for listener in listeners:
        groups[listener.getsockname()].append(listener)
    for group in groups.values():
        if len(group) > 1:
            _attach(group[0], program(len(group)))


def program(sockets: int) -> bytes:
    """Return a program that chooses one of `sockets` by the source address of a connection's first packet."""
    instructions = (
        (_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        (_SHIFT_RIGHT, 0, 0, 4),  # the version
        (_JUMP_IF_EQUAL, 2, 0, 6),
        (_LOAD_WORD, 0, 0, _IPV4_SOURCE),
        (_JUMP, 0, 0, 5),  # to the last four
        (_LOAD_WORD, 0, 0, _IPV6_SOURCE),
        (_MULTIPLY, 0, 0, _OTHER_FACTOR),
        (_TO_X, 0, 0, 0),
        (_LOAD_WORD, 0, 0, _IPV6_SOURCE + 4),
        (_XOR_X, 0, 0, 0),
        (_MULTIPLY, 0, 0, _FACTOR),
        (_SHIFT_RIGHT, 0, 0, 16),
        (_MODULO, 0, 0, sockets),
        (_RETURN, 0, 0, 0),
    )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _attach(listener: socket.socket, code: bytes) -> None:
    held = array.array("B", code)  # while the kernel copies it
    described = struct.pack("@HP", len(code) // 8, held.buffer_info()[0])
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, described)
    except OSError as error:
        raise OperatorError(
            f"FRONTAGE_EDGE_WORKER_BY_ADDRESS: the kernel does not spread connections by address: {error.strerror}"
        ) from error
