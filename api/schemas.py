"""What requests may say and how answers look (SPEC 2.3, 2.5, 2.6, 4.1): parsed strictly, once, at the border.

A field that is not known is ignored, one of the wrong type is refused; null is the same as not sent.
This module asks nobody: whether an address may be dialled or a domain enrolled is the services' business.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar, cast

import orjson
from aiohttp import web
from multidict import MultiMapping
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from api.errors import DOMAIN_NOT_VALID, INVALID_POWER_BODY, Refusal, Refused, invalid_parameter
from common.db.domains import Domain, Page, Status
from common.errors import FrontageError, InvalidName
from common.names import DomainName, parse_domain
from common.urls import parse_application_url

MOST_ROOT_PATHS = 100
DEFAULT_SIZE = 50
LARGEST_SIZE = 200
_LARGEST_PAGE = 10**9

Body = TypeVar("Body", bound=BaseModel)


def _application_url(text: str) -> str:
    try:
        parse_application_url(text)
    except FrontageError as error:
        raise ValueError(str(error)) from error
    return text


# RFC 3986's path; the slash in front may be left out.
_ROOT_PATH = r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+$"
RootPath = Annotated[str, Field(pattern=_ROOT_PATH, max_length=1024)]
RootPaths = Annotated[list[RootPath], Field(max_length=MOST_ROOT_PATHS)]
Url = Annotated[str, AfterValidator(_application_url)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class PowerBody(_Strict):
    domain: str
    application_url: Url = Field(alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")


class PowerChange(_Strict):
    domain: str
    application_url: Url | None = Field(None, alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")


class DomainBody(_Strict):
    domain: str


class TokenBody(_Strict):
    application_id: str = Field(alias="applicationId")
    secret: str


class ListQuery(_Strict):
    page: int = 0
    size: int = DEFAULT_SIZE
    status: Status | None = None


# Requests -------------------------------------------------------------------------------------------------


def parse_body(raw: bytes, schema: type[Body], not_understood: Refusal) -> Body:
    """`not_understood` is the answer to what is no JSON object; its status is that of every other refusal too.

    Raises: `Refused`.
    """
    try:
        return schema.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise Refused(not_understood, hint="the body is not JSON") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if not first["loc"]:
            raise Refused(not_understood, hint="the body is not a JSON object") from None
        raise Refused(
            _refusal_of_field(str(first["loc"][0]), not_understood), hint=first["msg"].removeprefix("Value error, ")
        ) from None


def parse_power_domain(text: str) -> DomainName:
    """Raises: `Refused`."""
    try:
        return parse_domain(text)
    except InvalidName as error:
        raise Refused(DOMAIN_NOT_VALID, hint=str(error)) from error


def parse_list_query(query: MultiMapping[str]) -> ListQuery:
    """Raises: `Refused` that names the parameter."""
    status = _single(query, "status")
    if status not in (None, "active", "inactive"):
        raise Refused(invalid_parameter("status"))
    return ListQuery(
        page=_integer(query, "page", default=0, least=0, most=_LARGEST_PAGE),
        size=_integer(query, "size", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE),
        status=cast("Status | None", status),
    )


def parse_flag(query: MultiMapping[str], name: str) -> bool:
    """``true`` or ``false``; false when it is not there. Raises: `Refused`."""
    text = _single(query, name)
    if text not in (None, "true", "false"):
        raise Refused(invalid_parameter(name))
    return text == "true"


def parse_text(query: MultiMapping[str], name: str) -> str:
    """Raises: `Refused`."""
    text = _single(query, name)
    if text is None:
        raise Refused(invalid_parameter(name))
    return text


def _single(query: MultiMapping[str], name: str) -> str | None:
    values = query.getall(name, [])
    if len(values) > 1:
        raise Refused(invalid_parameter(name))
    return values[0] if values else None


def _integer(query: MultiMapping[str], name: str, *, default: int, least: int, most: int) -> int:
    text = _single(query, name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
        raise Refused(invalid_parameter(name))
    return int(text)


def _refusal_of_field(name: str, not_understood: Refusal) -> Refusal:
    if name == "domain" and not_understood is INVALID_POWER_BODY:
        return DOMAIN_NOT_VALID
    return invalid_parameter(name, status=not_understood.status)


# Answers --------------------------------------------------------------------------------------------------


def powered_domain(domain: Domain) -> dict[str, Any]:
    return {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "powerRootPathAccess": domain.root_path_access,
        "powerStatus": domain.status,
    }


def envelope(page: Page, items: list[dict[str, Any]], query: ListQuery) -> dict[str, Any]:
    """SPEC 2.5. Before a page beyond the end stands the last page there is."""
    pages = -(-page.total // query.size)
    return {
        "items": items,
        "total": page.total,
        "page": query.page,
        "limit": query.size,
        "count": len(items),
        "pages": pages,
        "nextPage": query.page + 1 if query.page + 1 < pages else None,
        "prevPage": min(query.page, pages) - 1 if min(query.page, pages) > 0 else None,
    }


def message(text: str, status: int = 200) -> web.Response:
    return respond({"message": text}, status)


def respond(content: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")
