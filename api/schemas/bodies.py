"""Request bodies: JSON objects, checked field by field against a frozen schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from api.errors import DOMAIN_NOT_VALID, Refusal, Refused, invalid_parameter
from common.domain_settings import DomainSettings
from common.errors import FrontageError, InvalidName
from common.metadata import check_metadata
from common.names import DomainName, parse_enrollable
from common.urls import parse_application_url


class Strict(BaseModel):
    """The root of all bodies. `refusals`: the answer to a field that is not valid, where it is not the usual one."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    refusals: ClassVar[Mapping[str, Refusal]] = {}


class ProductBody(Strict):
    """The smallest body of Power and Secure; the whole body of DELETE."""

    refusals = {"domain": DOMAIN_NOT_VALID}

    domain: str

    @property
    def settings(self) -> DomainSettings:
        """Return the settings that the body gives the domain."""
        return DomainSettings.of(dict(self))


Body = TypeVar("Body", bound=Strict)


def _application_url(text: str) -> str:
    try:
        parse_application_url(text)
    except FrontageError as error:
        raise ValueError(str(error)) from error
    return text


Url = Annotated[str, AfterValidator(_application_url)]


def _metadata(given: dict[str, str]) -> dict[str, str]:
    try:
        return check_metadata(given)
    except FrontageError as error:
        raise ValueError(str(error)) from error


Metadata = Annotated[dict[str, str], AfterValidator(_metadata)]

_WORDS: Final = {
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "extra_forbidden": "there is no such field",
}
"""What is said in place of the library's words, which name classes of ours or speak of inputs, by type of error."""
_ALTERNATIVE: Final = re.compile(r"[A-Z]\w*Body|literal\[.*\]")
"""What the library puts into a place for the kinds that a field may be of, such as an object or one word."""


def parse_body(raw: bytes, schema: type[Body], not_understood: Refusal, *, context: Any = None) -> Body:
    """Parse a body of this schema. Raises: `Refused`.

    `not_understood` is the answer to what is no JSON object; its status is that of every other refusal too.
    `context` is the schema's.
    """
    try:
        given = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(not_understood, hint="the body is not JSON") from error
    return check_body(given, schema, not_understood, context=context)


def check_body(given: Any, schema: type[Body], not_understood: Refusal, *, context: Any = None) -> Body:
    """Check a body that is no longer JSON text against this schema; see `parse_body`. Raises: `Refused`."""
    try:
        return schema.model_validate(given, context=context)
    except ValidationError as error:
        raise _refused(schema, error, not_understood) from None


def parse_product_domain(text: str) -> DomainName:
    """Parse the domain of a body of Power or Secure. Raises: `Refused`."""
    try:
        return parse_enrollable(text)
    except InvalidName as error:
        raise Refused(DOMAIN_NOT_VALID, hint=str(error)) from error


def describe(error: ValidationError) -> str:
    """Describe the first thing that is wrong: ``dnsRecords[3]: value must be an IPv4 address``."""
    place, words = first_of(error)
    where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place).removeprefix(".")
    return f"{where}: {words}"


def _refused(schema: type[Strict], error: ValidationError, not_understood: Refusal) -> Refused:
    place, words = first_of(error)
    if not place:
        return Refused(not_understood, hint="the body is not a JSON object")
    name = str(place[0])
    refusal = schema.refusals.get(name) or invalid_parameter(name, status=not_understood.status)
    return Refused(refusal, hint=describe(error) if len(place) > 1 else words)


def first_of(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Return where the first thing that is wrong lies, and what it is."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = tuple(each for each in first["loc"] if not (isinstance(each, str) and _ALTERNATIVE.fullmatch(each)))
    return place, _WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
