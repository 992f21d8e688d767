"""Why an origin cannot be reached: the terms that edges report and the API shows, and the words for each.

What a visitor reads meanwhile is the edge's (`edge/http/error_responses.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

OriginFault: TypeAlias = Literal[
    "unresolved", "refused", "timeout", "certificate", "tls", "not_http", "forbidden", "connection"
]
"""Why an origin did not answer: it has no address, refuses connections, does not answer in time, shows a certificate
that is not valid for it, fails in TLS, does not speak HTTP, has only addresses that may not be dialled, or could not
be connected to for another reason."""


class FaultWords(NamedTuple):
    """The words for a fault.

    `asked` continues a sentence about the origin, where the API or a monitor asked it; `edge` one about an edge that
    met the fault. The remedies are sentences: `edge_remedy` is that for an origin which answers the API, but not every
    edge.
    """

    asked: str
    edge: str
    remedy: str
    edge_remedy: str = "Let every server and firewall of the origin accept connections from the edges."


WORDS: Final[Mapping[OriginFault, FaultWords]] = {
    "unresolved": FaultWords(
        "its name has no address, or could not be resolved",
        "found no address for it",
        "Give its name an address, or set another applicationUrl.",
        "Have all name servers of its name give it an address.",
    ),
    "refused": FaultWords(
        "it refuses connections",
        "was refused",
        "Start the server, let it listen on that port, or set another applicationUrl.",
    ),
    "timeout": FaultWords(
        "it did not answer in time",
        "had no answer in time",
        "See whether the server runs and a firewall lets the edges connect.",
    ),
    "certificate": FaultWords(
        "its certificate is not valid for it",
        "found its certificate not valid",
        "Renew its certificate, or set the name that it is for as the application's origin server name.",
        "Have every server behind its name show a valid certificate.",
    ),
    "tls": FaultWords(
        "TLS with it failed",
        "failed in TLS",
        "Have it offer TLS 1.2 or later, or set an applicationUrl that begins with http://.",
        "Have every server behind its name offer TLS 1.2 or later.",
    ),
    "not_http": FaultWords(
        "its answer was not valid HTTP",
        "had an answer that is not valid HTTP",
        "Have it speak HTTP/1.1 on that port, or set another applicationUrl.",
        "See what it sends (curl -v --raw): each line of a head ends with CR LF, and its fields state one length. The"
        " operator's log names the fault of each answer (origin_invalid).",
    ),
    "forbidden": FaultWords(
        "its address is not public, or may not be dialled for another reason",
        "may not dial its address",
        "Set an applicationUrl whose name has a public address.",
        "Give its name public addresses only.",
    ),
    "connection": FaultWords(
        "no connection to it could be made",
        "could not connect",
        "See whether the server can be reached from the internet.",
    ),
}
"""Of every fault."""


@dataclass(frozen=True, slots=True, order=True)
class OriginIdentity:
    """All that decides how an edge connects to an origin. Applications that verify it in different ways differ here.

    `host` is an A-label or an IP literal without brackets; `server_name` is for SNI and verification.
    """

    scheme: str
    host: str
    port: int
    server_name: str
    verify: bool


@dataclass(frozen=True, slots=True, order=True)
class FailingOrigin:
    """An origin to which the last attempt to connect failed, or whose answer was not valid HTTP (``not_http``)."""

    origin: OriginIdentity
    fault: OriginFault
