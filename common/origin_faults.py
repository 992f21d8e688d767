"""Why an origin cannot be reached: the terms that edges report and the API shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

OriginFault: TypeAlias = Literal[
    "unresolved", "refused", "timeout", "certificate", "tls", "not_http", "forbidden", "connection"
]
"""Why an origin did not answer: it has no address, refuses connections, does not answer in time, shows a certificate
that is not valid for it, fails in TLS, does not speak HTTP, has only addresses that may not be dialled, or could not
be connected to for another reason."""


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
