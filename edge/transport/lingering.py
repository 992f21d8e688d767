"""The end of a raw connection: let the last bytes leave, then close, both within bounds.

Closing at once while the client still sends makes the kernel answer with a reset, which can destroy what the
client has not read yet. So we send FIN, read and forget until the client's own end, and only then close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LINGER_SECONDS = 2.0
_STALLED_ROUNDS = 15  # of so long, in which it took nothing of what we have not sent yet: half a minute
_LINGER_BYTES = 256 * 1024


def linger(
    loop: asyncio.AbstractEventLoop,
    raw: asyncio.Transport,
    on_lost: Callable[[Exception | None], None],
    *,
    input_ended: bool = False,
) -> None:
    """Take the raw transport over after its last write; `on_lost` is called once it is gone."""
    raw.set_protocol(Lingering(loop, raw, on_lost))
    if input_ended:
        raw.close()
        return
    try:
        raw.write_eof()
    except (OSError, RuntimeError):  # the peer has reset, and the loop has not told us yet
        raw.abort()
        return
    raw.resume_reading()


class Lingering(asyncio.Protocol):
    """Ends when the client does, after 256 KB more from it, or 2 s after all was sent; or when it takes no more."""

    __slots__ = ("_loop", "_on_lost", "_raw", "_rounds_left", "_timer", "_unread_bytes", "_unsent_bytes")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        raw: asyncio.Transport,
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        self._loop = loop
        self._raw = raw
        self._on_lost = on_lost
        self._unread_bytes = _LINGER_BYTES
        self._unsent_bytes = raw.get_write_buffer_size()
        self._rounds_left = _STALLED_ROUNDS
        self._timer = loop.call_later(_LINGER_SECONDS, self._on_timer)

    def data_received(self, data: bytes) -> None:
        self._unread_bytes -= len(data)
        if self._unread_bytes < 0:
            self._raw.abort()

    def eof_received(self) -> bool:
        return False  # the transport closes itself, after its buffer

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._on_lost(exc)

    def _on_timer(self) -> None:
        unsent_bytes = self._raw.get_write_buffer_size()
        self._rounds_left = _STALLED_ROUNDS if unsent_bytes < self._unsent_bytes else self._rounds_left - 1
        self._unsent_bytes = unsent_bytes
        if unsent_bytes and self._rounds_left:
            self._timer = self._loop.call_later(_LINGER_SECONDS, self._on_timer)
        else:
            self._raw.abort()
