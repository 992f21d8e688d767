"""What a worker reads of applications and routes, parsed once, strictly, from whatever the replica holds.

Records are written by the migration of the day (the functions ``routed_content``): a field that an older one did not
write has the meaning it had then, fields that a newer one adds are ignored.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from common.errors import FrontageError

_R = TypeVar("_R", bound="_Record")


class RecordReader(Protocol):
    """What is asked of `edge.replica.reader.ReplicaReader`."""

    def get_raw(self, kind: str, key: str) -> bytes | None: ...


class RecordUnusable(FrontageError):
    """What the replica holds is not what this program can serve by."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)


class ApplicationRecord(_Record):
    """Secrets are envelopes in base64."""

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
    buffer_uploads_bytes: Annotated[int, Field(gt=0)] | None = None


class RouteRecord(_Record):
    application_id: Annotated[str, Field(pattern=r"^[!-~]{1,253}$")]
    application_url: str | None = None
    root_path_access: tuple[str, ...] | None = None
    redirect_to: str | None = None


class CertificateRecord(_Record):
    """The key is an envelope in base64, in lines as Postgres breaks it."""

    chain: str
    private_key: str


class OrderRecord(_Record):
    hold_until: float  # unix seconds


class AcmeKeyRecord(_Record):
    thumbprint: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class ErrorPageRecord(_Record):
    html: str


def read_record(kind: type[_R], content: bytes) -> _R:
    """Raises: `RecordUnusable`."""
    try:
        return kind.model_validate_json(content)
    except ValueError as error:
        raise RecordUnusable(str(error).replace("\n", " ")) from error
