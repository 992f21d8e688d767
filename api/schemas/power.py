"""Power's bodies and items."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from api.schemas.bodies import ProductBody, Url
from api.schemas.listed_domain import listed
from common.db.domains import ListedDomain

MOST_ROOT_PATHS = 100

_ROOT_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+")


def _root_path(text: str) -> str:
    """RFC 3986 §3.3; the slash in front may be left out."""
    if not _ROOT_PATH.fullmatch(text):
        raise ValueError("a path such as /static: other characters than those of a URL's path are percent-encoded")
    return text


RootPath = Annotated[str, Field(max_length=1024), AfterValidator(_root_path)]
RootPaths = Annotated[list[RootPath], Field(max_length=MOST_ROOT_PATHS)]


class PowerBody(ProductBody):
    application_url: Url = Field(alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")


class PowerChange(ProductBody):
    application_url: Url | None = Field(None, alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")


def powered_domain(domain: ListedDomain) -> dict[str, Any]:
    return {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "powerRootPathAccess": domain.root_path_access,
        "powerStatus": domain.status,
    } | listed(domain)
