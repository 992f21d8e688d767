"""The body of ``PUT /domains/:domain/certificate``."""

from __future__ import annotations

from pydantic import Field

from api.schemas.bodies import Strict


class CertificateBody(Strict):
    """`certificate`: the chain, PEM. `private_key`: PEM, not encrypted; left out, that of the open request is used."""

    certificate: str
    private_key: str | None = Field(None, alias="privateKey")
