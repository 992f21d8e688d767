"""What responses carry besides the origin's fields, as bodies have it: an application's, and a domain's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.rules.application_settings import InvalidSetting
from api.rules.response_policy import (
    LONGEST_HSTS_SECONDS,
    MOST_FIELDS,
    Compression,
    Hsts,
    ReferrerPolicy,
    check_domain_policy,
    read_policy,
)
from api.schemas.bodies import Strict


class HstsBody(Strict):
    """`includeSubDomains` and `preload` need `customersAgree`: they bind names that are not served here."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)

    max_age: int = Field(ge=0, le=LONGEST_HSTS_SECONDS)
    include_sub_domains: bool = False
    preload: bool = False
    customers_agree: bool = False

    def read(self) -> Hsts:
        """Return what the body asks for."""
        return Hsts(self.max_age, self.include_sub_domains, self.preload, self.customers_agree)


class ResponsePolicyBody(Strict):
    """Fields that responses carry where the origin sends none of that name; an empty object takes all away."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)

    hsts: HstsBody | None = None
    nosniff: bool = False
    referrer_policy: ReferrerPolicy | None = None
    compression: Compression = "off"
    fields_: dict[str, str] = Field({}, alias="fields", max_length=MOST_FIELDS)

    def stored(self) -> dict[str, Any] | None:
        """Return what is kept. Raises: `InvalidSetting`."""
        return read_policy(
            None if self.hsts is None else self.hsts.read(),
            nosniff=self.nosniff,
            referrer_policy=self.referrer_policy,
            fields=self.fields_,
            compression=self.compression,
        )


class DomainResponsePolicyBody(Strict):
    """What holds before the application's, in place of all of before; an empty object ends it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)

    hsts: HstsBody | Literal["off"] | None = None
    nosniff: bool | None = None
    referrer_policy: ReferrerPolicy | Literal["off"] | None = None
    compression: Compression | None = None
    fields_: dict[str, str] = Field({}, alias="fields", max_length=MOST_FIELDS)

    def stored(self) -> dict[str, Any]:
        """Return what is kept: what is stated, under the API's names. Raises: `ValueError`."""
        try:
            check_domain_policy(self.hsts.read() if isinstance(self.hsts, HstsBody) else None, self.fields_)
        except InvalidSetting as error:
            raise ValueError(str(error)) from error
        return self.model_dump(by_alias=True, exclude_defaults=True)


DomainResponsePolicy = Annotated[DomainResponsePolicyBody, AfterValidator(DomainResponsePolicyBody.stored)]
"""In a body; its value is what is kept."""
