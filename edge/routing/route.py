"""What the edge knows of one domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from edge.http.error_responses import ErrorResponse
from edge.routing.response_policy import ResponsePolicy
from edge.routing.visitors import VisitorRules

Product: TypeAlias = Literal["power", "secure"]


class Origin(NamedTuple):
    """The partner's server.

    Equal origins share their upstream connections, so it holds all that tells them apart.
    """

    scheme: Literal["http", "https"]
    host: str  # an A-label, or an IP literal without brackets
    port: int
    server_name: str  # for SNI and verification
    verify: bool = True
    is_own_api: bool = False  # the management API of this installation, under the operator's own domain

    @property
    def authority(self) -> bytes:
        """Return the value of the Host field: without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return (host if self.port == default else f"{host}:{self.port}").encode()


class RedirectTo(NamedTuple):
    """The address that every visitor is sent on to instead."""

    host: str  # in canonical form
    authority: bytes  # with the scheme: https://www.example.com
    base_path: bytes  # as written, often empty


class Signing(NamedTuple):
    """The keys that sign requests on their way to the application (`common.signatures`)."""

    key: bytes
    previous: bytes = b""  # signs too, until `previous_until` (unix seconds)
    previous_until: float = 0.0

    def keys(self, at: int) -> tuple[bytes, ...]:
        """Return the keys that sign at that time (unix seconds), the newest first."""
        return (self.key, self.previous) if self.previous and at < self.previous_until else (self.key,)


class LearntRoot:
    """The application's root as its origin answers it, where that is not `Route.base_path` as written.

    Then the last slash is added, or removed.

    Part of a route and forgotten with it. Mutable state: `path`, which exchanges set (`edge.routing.root_redirects`).
    """

    __slots__ = ("path",)

    def __init__(self) -> None:
        self.path = b""  # b"" for the path as written

    def __repr__(self) -> str:
        return f"<LearntRoot {self.path!r}>"


@dataclass(frozen=True, slots=True)
class Route:
    """A domain, as enrolled. Built from the replica by `edge.replica.routes`; replaced, never changed."""

    domain: str
    product: Product
    application_id: str
    origin: Origin
    base_path: bytes  # the applicationUrl's path as written; b"" for none. Secure has none: it does not rewrite
    root_paths: tuple[bytes, ...]  # without trailing slash
    service_auth: bytes  # X-Service-Auth, b"" when off
    origin_host: bytes  # for the Host field; b"" sends the customer's own
    signing: Signing | None = None
    redirect_to: RedirectTo | None = None  # then there is no origin
    refusal: ErrorResponse | None = None  # what every request is answered, instead of being forwarded
    response_policy: ResponsePolicy | None = None  # fields that responses carry besides the origin's
    buffer_uploads_bytes: int = 0  # the largest body that is taken in whole before the origin is asked; 0: streamed
    visitors: VisitorRules | None = None  # which visitors are refused
    needs_tls13: bool = False
    metadata: bytes = b""  # fields about the domain that the origin gets: \r\nName: value …
    learnt_root: LearntRoot = field(default_factory=LearntRoot, compare=False, repr=False)
