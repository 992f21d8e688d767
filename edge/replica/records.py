"""Parses what a worker reads of applications and routes, once, strictly, from whatever the replica holds.

Records are written by the migration of the day (the functions ``routed_content``): a field that an older one did not
write has the meaning it had then, fields that a newer one adds are ignored.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from common.errors import FrontageError

_R = TypeVar("_R", bound="_Record")


class RecordReader(Protocol):
    """The part of `edge.replica.reader.ReplicaReader` that reads records."""

    def get_raw(self, kind: str, key: str) -> bytes | None:
        """Return the content of a record, None if there is none."""


class RecordUnusable(FrontageError):
    """The replica's record is not one that this program can serve by."""


class _Record(msgspec.Struct, frozen=True):
    """Strict: no text is taken for a number. Errors name the field and never its value."""


class RateLimitRecord(_Record, frozen=True):
    """How many requests each client of a domain may send."""

    requests: Annotated[int, Meta(ge=1)]
    seconds: Annotated[int, Meta(ge=1)] = 1


class VisitorsRecord(_Record, frozen=True, rename="camel"):
    """Which visitors of a domain are refused."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rate_limit: RateLimitRecord | None = None
    minimum_tls: Literal["1.2", "1.3"] | None = None


class ResponsePolicyRecord(_Record, frozen=True):
    """Fields that responses carry where the origin sends none of that name; `hsts_seconds`: None for no HSTS."""

    hsts_seconds: Annotated[int, Meta(ge=0)] | None = None
    hsts_subdomains: bool = False
    hsts_preload: bool = False
    nosniff: bool = False
    compression: Literal["off", "on", "always"] = "off"
    referrer_policy: Annotated[str, Meta(pattern=r"\A[a-z-]{1,40}\Z")] | None = None
    fields: dict[
        Annotated[str, Meta(pattern=r"\A[A-Za-z0-9-]{1,100}\Z")],
        Annotated[str, Meta(pattern=r"\A[!-~]([ -~]{0,1998}[!-~])?\Z")],
    ] = {}


class HstsRecord(_Record, frozen=True, rename="camel"):
    """HSTS as a domain states it."""

    max_age: Annotated[int, Meta(ge=0)]
    include_sub_domains: bool = False
    preload: bool = False


class DomainPolicyRecord(_Record, frozen=True, rename="camel"):
    """What holds for a domain before its application's `ResponsePolicyRecord`; an empty field is not sent."""

    hsts: HstsRecord | Literal["off"] | None = None
    nosniff: bool | None = None
    compression: Literal["off", "on", "always"] | None = None
    referrer_policy: Annotated[str, Meta(pattern=r"\A[a-z-]{1,40}\Z")] | None = None
    fields: dict[
        Annotated[str, Meta(pattern=r"\A[A-Za-z0-9-]{1,100}\Z")],
        Annotated[str, Meta(pattern=r"\A([!-~]([ -~]{0,1998}[!-~])?)?\Z")],
    ] = {}


class ApplicationRecord(_Record, frozen=True):
    """An application; secrets are envelopes in base64."""

    application_url: str | None = None
    root_path_access: tuple[str, ...] = ()
    service_auth: str | None = None
    send_host: Literal["origin", "customer"] = "origin"
    origin_server_name: str | None = None
    origin_verify: bool = True
    signature_key: str | None = None
    previous_signature_key: str | None = None
    previous_signature_until: float | None = None
    maintenance: bool = False
    buffer_uploads_bytes: Annotated[int, Meta(gt=0)] | None = None
    http2: bool = True
    minimum_tls: Literal["1.2", "1.3"] | None = None
    response_policy: ResponsePolicyRecord | None = None
    metadata_fields: tuple[str, ...] = ()


class RouteRecord(_Record, frozen=True):
    """A route. `origin_vouched`: `application_url` was set with full rights; else the origin gets no proof of ours."""

    application_id: Annotated[str, Meta(pattern=r"\A[!-~]{1,253}\Z")]
    application_url: str | None = None
    root_path_access: tuple[str, ...] | None = None
    redirect_to: str | None = None
    origin_vouched: bool = True
    metadata: dict[str, str] = {}
    visitors: VisitorsRecord | None = None
    response_policy: DomainPolicyRecord | None = None


class CertificateRecord(_Record, frozen=True):
    """A certificate; the key is an envelope in base64, in lines as Postgres breaks it."""

    chain: str
    private_key: str


class OrderRecord(_Record, frozen=True):
    """A certificate's order that runs."""

    hold_until: float  # unix seconds


class AcmeKeyRecord(_Record, frozen=True):
    """The ACME account key's public part."""

    thumbprint: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]+\Z")]


class ChallengeRecord(_Record, frozen=True):
    """What a CA looks for at a label of the delegated zone, while an order runs: values of TXT records."""

    values: tuple[Annotated[str, Meta(pattern=r"\A[!-~]{1,255}\Z")], ...]


class ErrorPageRecord(_Record, frozen=True):
    """An application's own error page."""

    html: str


class AnswerRecord(_Record, frozen=True):
    """The answer that a policy gives to every request."""

    status: Literal[403, 451]
    reason: str


class PolicyRecord(_Record, frozen=True):
    """What is done with the requests of a domain or an application besides forwarding them."""

    answer: AnswerRecord | None = None


def read_record(kind: type[_R], content: bytes) -> _R:
    """Parse a record.

    Raises: `RecordUnusable`.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RecordUnusable(str(error)) from error
