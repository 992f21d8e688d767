"""The end of a raw connection: let the last bytes leave, then close, both within bounds.

Closing at once while the client still sends makes the kernel answer with a reset, which can destroy what the
client has not read yet. So we send FIN, read and discard until the client's own end, and only then close. The bound
is time, not bytes: a client on a fast link sends megabytes before it reads the early answer to its upload.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

ROUND_SECONDS = 2.0
_MAX_ROUNDS = 15  # half a minute, as nginx's lingering_time


def linger(
    loop: asyncio.AbstractEventLoop,
    raw: asyncio.Transport,
    on_lost: Callable[[Exception | None], None],
    *,
    input_ended: bool = False,
    round_seconds: float = ROUND_SECONDS,
) -> None:
    """Take the raw transport over after its last write; `on_lost` is called once it is gone."""
    raw.set_protocol(Lingering(loop, raw, on_lost, round_seconds=round_seconds))
    if input_ended:
        raw.close()
        return
    try:
        raw.write_eof()
    except (OSError, RuntimeError):  # the peer has reset, and the loop has not reported it yet
        raw.abort()
        return
    raw.resume_reading()


class Lingering(asyncio.Protocol):
    """Discards what the client sends, until the client ends the connection or a bound is reached.

    Looks once a round. Aborts when in one round the client neither took nor sent anything, with everything
    sent; and after 15 rounds in which it took nothing of what is unsent, or only sent.
    """

    __slots__ = (
        "_has_received",
        "_loop",
        "_on_lost",
        "_raw",
        "_round_seconds",
        "_rounds_left",
        "_timer",
        "_unsent_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        raw: asyncio.Transport,
        on_lost: Callable[[Exception | None], None],
        *,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._loop = loop
        self._round_seconds = round_seconds
        self._raw = raw
        self._on_lost = on_lost
        self._has_received = False  # in this round
        self._unsent_bytes = raw.get_write_buffer_size()
        self._rounds_left = _MAX_ROUNDS
        self._timer = loop.call_later(round_seconds, self._end_round)

    def data_received(self, data: bytes) -> None:
        """Discard the bytes."""
        self._has_received = True

    def eof_received(self) -> bool:
        """Close: the client has ended the connection."""
        return False  # the transport closes itself, after its buffer

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking, and report the loss."""
        self._timer.cancel()
        self._on_lost(exc)

    def _end_round(self) -> None:
        unsent_bytes = self._raw.get_write_buffer_size()
        self._rounds_left = _MAX_ROUNDS if unsent_bytes < self._unsent_bytes else self._rounds_left - 1
        is_active = bool(unsent_bytes) or self._has_received
        self._unsent_bytes, self._has_received = unsent_bytes, False
        if is_active and self._rounds_left:
            self._timer = self._loop.call_later(self._round_seconds, self._end_round)
        else:
            self._raw.abort()
