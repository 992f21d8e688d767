"""The messages between the upgrade parent and its generations, over a socketpair.

One message a line, JSON. An upgrade parent talks to generations of later versions than its own: messages and fields
are only ever added, and unknown ones are ignored. End of file means that the other side is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edge.process.message_codec import MessageDecoder, encode_message
from edge.process.worker_messages import ListenerPair

# From the upgrade parent -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The listening sockets, as inherited descriptors: `http[i]` and `https[i]` are pair i.

    `dns`: EDGE_DNS over UDP and over TCP, empty where it is off.
    """

    http: list[int]
    https: list[int]
    admin: int
    dns: list[int] = field(default_factory=list)

    @property
    def pairs(self) -> tuple[ListenerPair, ...]:
        """Return the pairs of descriptors."""
        return tuple(ListenerPair(*pair) for pair in zip(self.http, self.https, strict=True))


@dataclass(frozen=True, slots=True)
class Prepare:
    """Start workers that could accept but do not; the answer is `Prepared`."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Take the active role and accept; the answer is `Serving`."""


@dataclass(frozen=True, slots=True)
class StandBack:
    """Give up the active role, and serve on; the answer is `StoodBack`. `TakeOver` may follow, or `Leave`."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Another generation serves: accept no more, let what runs come to its end, and exit."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The edge ends: serve until nothing runs or the grace is over, and exit."""


@dataclass(frozen=True, slots=True)
class Renew:
    """Replace the workers one by one."""


@dataclass(frozen=True, slots=True)
class UpgradeFailed:
    """The generation that was to follow failed, and this one serves on; `at` is ISO 8601."""

    at: str
    reason: str


Command = Begin | Prepare | TakeOver | StandBack | Leave | Stop | Renew | UpgradeFailed


# From a generation ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """Every pair has a worker that could accept."""


@dataclass(frozen=True, slots=True)
class Serving:
    """It has the active role, and workers accept from every pair."""


@dataclass(frozen=True, slots=True)
class StoodBack:
    """It has given up the active role: another may write the replica and answer at the admin port."""


Report = Prepared | Serving | StoodBack

_COMMANDS: MessageDecoder[Command] = MessageDecoder(
    Begin, Prepare, TakeOver, StandBack, Leave, Stop, Renew, UpgradeFailed
)
_REPORTS: MessageDecoder[Report] = MessageDecoder(Prepared, Serving, StoodBack)


def encode(message: Command | Report) -> bytes:
    """Return the message as a line."""
    return encode_message(message)


def decode_command(line: bytes) -> Command | None:
    """Return a command, or None for a message that only later versions know.

    Raises: ValueError.
    """
    return _COMMANDS.decode(line)


def decode_report(line: bytes) -> Report | None:
    """Return a report, or None for a message that only later versions know.

    Raises: ValueError.
    """
    return _REPORTS.decode(line)
