"""The client connection as its exchange sees it, whatever is spoken on it: the seam between the two.

An exchange calls nothing else of its client, and writes none of its fields. `edge/README.md` states the rules.
"""

from __future__ import annotations

from typing import Protocol

from edge.proxy.exchange_states import Ending


class ClientSide(Protocol):
    """One request's place at its client: an HTTP/1.1 connection, which has one at a time, or a stream of HTTP/2."""

    scheme: bytes  # how the client speaks to the domain: b"http" or b"https"
    bytes_down: int  # written for this exchange

    @property
    def request_id(self) -> str:
        """Return the request's id; it is made when it is first needed."""

    def write_interim(self, head: bytes) -> None:
        """Send an interim response (RFC 9110 §15.2); others may follow."""

    def fill_head(self, form: bytes, values: tuple[bytes, ...], /) -> bytes:
        """Return the head that is ``form % values``, as `write_head` and `write_last` take it from this client alone.

        Each value is all of a field's value.
        """

    def write_head(self, head: bytes, data: bytes) -> None:
        """Send the final response's head, and the first bytes behind it: of its body, or of the tunnel."""

    def write_last(self, head: bytes, data: bytes) -> None:
        """Send the final response's head and all of its body; `on_exchange_end` with `LAST` follows at once."""

    def write(self, data: bytes) -> None:
        """Send more of the body, as framed for the client's version of HTTP, or of the tunnel."""

    def write_trailers(self, block: bytes) -> None:
        """Send the trailer fields of a body that has no last chunk; `on_exchange_end` follows at once."""

    def pause_reading(self) -> None:
        """Deliver no more of the request: the origin does not take it."""

    def resume_reading(self) -> None:
        """Deliver again."""

    def set_deadline(self, seconds: float) -> None:
        """Call `Exchange.on_deadline` in so many seconds, unless another deadline is set before."""

    def forget_request(self) -> None:
        """Decide upon the same request anew when it comes again."""

    def on_tunnel(self) -> None:
        """Pass bytes of both sides on as they are from now on."""

    def end_writing(self) -> bool:
        """End the client's side of the tunnel, as the origin's has. Return False where none can be half-closed."""

    def on_exchange_end(self, ending: Ending) -> None:
        """End the request. Called once, last; the exchange uses nothing of the client afterwards."""
