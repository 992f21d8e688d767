"""The messages between a supervisor and a worker, over the socketpair between them: pure encoding.

One message a line, JSON; an empty line is `Wake`, so that waking a worker costs a byte. The supervisor's first
message is `Begin`. No secret is sent here: a worker reads the master key from its file by itself.
End of file means that the other side is gone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from common.metrics import Family
from common.settings import Settings


@dataclass(frozen=True, slots=True)
class ListenerPair:
    """The two listening sockets that one worker accepts from, as descriptors every worker inherits."""

    http: int
    https: int


# From the supervisor -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """Who you are: compose `service` (``module:function``) for pair `pair`, and accept nothing yet."""

    service: str
    settings: Settings
    pair: int
    pairs: tuple[ListenerPair, ...]


@dataclass(frozen=True, slots=True)
class Wake:
    """The replica has changed."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Accept from this pair: your own at last, or another's, whose worker is gone or hangs."""

    pair: int


@dataclass(frozen=True, slots=True)
class Release:
    """Let the adopted pair go: its own worker is there again."""

    pair: int


@dataclass(frozen=True, slots=True)
class Drain:
    """No more keep-alive; go on accepting."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Accept no more, let go of every listening socket, and exit once idle, at the latest after this time.

    May be said again with another time, which counts from then."""

    grace_seconds: float


Command = Begin | Wake | Adopt | Release | Drain | Finish


# From a worker -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """It could accept."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Its loop turns. `idle`: it drains, and no exchange runs. `families`: what it measured since it started."""

    idle: bool
    families: list[Family] = field(default_factory=list)


Report = Ready | Beat


def encode(message: Command | Report) -> bytes:
    match message:
        case Wake():
            return b"\n"
        case Begin():
            # The database's address carries a password, and a worker has no business with the database.
            settings = message.settings.model_dump(mode="json", exclude={"database_url"})
            said: dict[str, Any] = {
                "service": message.service,
                "settings": settings,
                "pair": message.pair,
                "pairs": [asdict(pair) for pair in message.pairs],
            }
        case Beat():
            said = {"idle": message.idle, "families": [family.to_plain() for family in message.families]}
        case _:
            said = asdict(message)
    return orjson.dumps({"say": type(message).__name__, **said}) + b"\n"


def decode_command(line: bytes) -> Command:
    """A message of the supervisor. Raises: ValueError for one that this version does not know."""
    if line == b"\n":
        return Wake()
    said = orjson.loads(line)
    match said.pop("say"):
        case "Begin":
            pairs = tuple(ListenerPair(**pair) for pair in said["pairs"])
            return Begin(said["service"], Settings(**said["settings"]), said["pair"], pairs)
        case "Adopt":
            return Adopt(**said)
        case "Release":
            return Release(**said)
        case "Drain":
            return Drain()
        case "Finish":
            return Finish(**said)
        case other:
            raise ValueError(f"not an command: {other}")


def decode_report(line: bytes) -> Report:
    """A message of a worker. Raises: ValueError for one that this version does not know."""
    said = orjson.loads(line)
    match said.pop("say"):
        case "Ready":
            return Ready()
        case "Beat":
            return Beat(said["idle"], [Family.from_plain(plain) for plain in said["families"]])
        case other:
            raise ValueError(f"not a report: {other}")
