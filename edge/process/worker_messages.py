"""The messages between a supervisor and a worker, over the socketpair between them.

One message a line, JSON; an empty line is `Wake`, so that waking a worker costs a byte. The supervisor's first
message is `Compose`. No secret is sent here: a worker reads the master key from its file by itself.
End of file means that the other side is gone.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Self

from common.host_ports import HostPort
from common.metrics import Family
from common.origin_faults import FailingOrigin, OriginIdentity
from common.settings import PREFIX, Settings, load, without_secrets
from edge.process.message_codec import MessageDecoder, encode_message
from edge.replica.certificate_keys import CertificateUse

STACK_SIGNAL: Final = signal.SIGUSR1
"""Asks a worker for its stacks, also one that reads no message any more."""


@dataclass(frozen=True, slots=True)
class ListenerPair:
    """The two listening sockets that one worker accepts from, as descriptors every worker inherits."""

    http: int
    https: int


# From the supervisor -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compose:
    """The worker's part: compose `service` (``module:function``) for pair `pair`, and accept nothing yet."""

    NAME: ClassVar = "Begin"

    service: str
    settings: Settings
    pair: int
    pairs: tuple[ListenerPair, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return the message as JSON's types, without secrets."""
        # Secrets are for the database and for CAs, with which a worker has no business.
        settings = {name.removeprefix(PREFIX).lower(): text for name, text in without_secrets(self.settings).items()}
        pairs = [asdict(pair) for pair in self.pairs]
        return {"service": self.service, "settings": settings, "pair": self.pair, "pairs": pairs}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """Return the message that `to_plain` made these of."""
        pairs = tuple(ListenerPair(**pair) for pair in plain["pairs"])
        given = {PREFIX + name.upper(): _text(value) for name, value in plain["settings"].items() if name != "acme_eab"}
        return cls(plain["service"], load(given), plain["pair"], pairs)


def _text(value: Any) -> str:
    """Return a setting's text.

    An older supervisor, one of whose workers ends after the packages were replaced, sends other JSON: a host and a
    port, lists, numbers, null; and CAs' accounts, which are left out above.
    """
    if isinstance(value, list):
        is_host_and_port = [type(part) for part in value] == [str, int]
        return str(HostPort(*value)) if is_host_and_port else ",".join(map(_text, value))
    return "" if value is None else str(value)


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

    May be said again with another time, which counts from then.
    """

    grace_seconds: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """Another worker reached these origins again: connect to them at once."""

    origins: list[OriginIdentity]

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """Return the message that these are the JSON of."""
        return cls([OriginIdentity(**each) for each in plain["origins"]])


Command = Compose | Wake | Adopt | Release | Drain | Finish | Recovered


# From a worker -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker could accept."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The worker's loop runs.

    `idle`: it drains, and no exchange runs. `families`: what it measured since it started. `failing`: the origins that
    it could not reach in the last minute. `recovered`: those that it reached again since the last beat; none from a
    worker of an older version. `certificates`: what it can use of those that it was asked for.
    """

    idle: bool
    families: list[Family] = field(default_factory=list)
    failing: list[FailingOrigin] = field(default_factory=list)
    recovered: list[OriginIdentity] = field(default_factory=list)
    certificates: CertificateUse = field(default_factory=CertificateUse)

    def to_plain(self) -> dict[str, Any]:
        """Return the message as JSON's types."""
        families = [family.to_plain() for family in self.families]
        return {
            "idle": self.idle,
            "families": families,
            "failing": self.failing,
            "recovered": self.recovered,
            "certificates": asdict(self.certificates),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """Return the message that `to_plain` made these of."""
        failing = [FailingOrigin(OriginIdentity(**each["origin"]), each["fault"]) for each in plain["failing"]]
        recovered = [OriginIdentity(**each) for each in plain.get("recovered", ())]
        use = CertificateUse(**plain.get("certificates", {}))
        families = [Family.from_plain(family) for family in plain["families"]]
        return cls(plain["idle"], families, failing, recovered, use)


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """What the worker counted for each domain since it last sent this: `common.traffic.TrafficReport.to_plain`."""

    NAME: ClassVar = "Traffic"

    entries: list[list[Any]]


Report = Ready | Beat | DomainCounts


_COMMANDS: MessageDecoder[Command] = MessageDecoder(Compose, Adopt, Release, Drain, Finish, Recovered)
_REPORTS: MessageDecoder[Report] = MessageDecoder(Ready, Beat, DomainCounts)
_WAKE = b"\n"


def encode(message: Command | Report) -> bytes:
    """Return the message as a line."""
    return _WAKE if isinstance(message, Wake) else encode_message(message)


def decode_command(line: bytes) -> Command:
    """Return a message of the supervisor.

    Raises: ValueError for one that this version does not know.
    """
    command = Wake() if line == _WAKE else _COMMANDS.decode(line)
    if command is None:
        raise ValueError(f"not a command: {line[:100]!r}")
    return command


def decode_report(line: bytes) -> Report:
    """Return a message of a worker.

    Raises: ValueError for one that this version does not know.
    """
    report = _REPORTS.decode(line)
    if report is None:
        raise ValueError(f"not a report: {line[:100]!r}")
    return report
