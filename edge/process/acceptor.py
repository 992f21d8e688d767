"""Accepting from one pair, and letting go of it without losing a connection.

Queued connections stay queued for the next acceptor, and accepted ones are served to their end. The pair's
sockets themselves are never closed here: accepting goes through duplicates of their descriptors.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from edge.process.listeners import BACKLOG
from edge.process.worker_messages import ListenerPair

Protocols = Callable[[], asyncio.Protocol]


class Acceptor:
    """Accepts from one pair. Created by `accept_from`, closed by its caller."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers

    async def close(self) -> None:
        """Stop accepting, without losing a connection that was accepted or is queued."""
        loop = asyncio.get_running_loop()
        for server in self._servers:
            for listener in server.sockets:
                loop.remove_reader(listener.fileno())
        # A server of plain asyncio that is closed between accepting a connection and its first turn forgets the
        # connection: its client waits for ever (python/cpython#109564). uvloop has no such gap.
        for _ in range(2):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()


async def accept_from(pair: ListenerPair, plain: Protocols, secure: Protocols) -> Acceptor:
    """Accept from the pair until the acceptor is closed."""
    return Acceptor([await _serve(pair.http, plain), await _serve(pair.https, secure)])


async def _serve(descriptor: int, protocol: Protocols) -> asyncio.Server:
    listener = socket.socket(fileno=os.dup(descriptor))
    try:
        return await asyncio.get_running_loop().create_server(protocol, sock=listener, backlog=BACKLOG)
    except BaseException:
        listener.close()
        raise
