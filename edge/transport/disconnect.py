"""Finds whether a peer disconnected while we do not read from it: the loop does not poll a paused socket.

The kernel knows of a reset at once, and of a FIN when it could take all that came before it. A client that closes in
order while our side's buffers are full keeps its FIN behind unread bytes: only a deadline ends that.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from typing import Any, Final

_TCP_CLOSE: Final = 7  # include/net/tcp_states.h
_TCP_CLOSE_WAIT: Final = 8
_NO_BYTES: Final = struct.pack("i", 0)
# What was read before the pause, and may wait in the TLS layer: one read of the loop's, at most.
_READ_BYTES: Final = 1 << 20


def client_disconnected(sock: Any, missing_bytes: int) -> bool:
    """Return whether the peer of a transport's socket has disconnected.

    `missing_bytes`: what is certainly still to come of the message under way.
    """
    try:
        state: int = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        if state == _TCP_CLOSE_WAIT and missing_bytes > _READ_BYTES:
            unread_bytes: int = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.FIONREAD, _NO_BYTES))[0]
            return missing_bytes > unread_bytes + _READ_BYTES
    except OSError:
        return True
    return state == _TCP_CLOSE
