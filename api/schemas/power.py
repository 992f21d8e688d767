"""Power's bodies and items."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from api.schemas.bodies import ProductBody, Url
from common.db.domain_pages import ListedDomain
from common.urls import MOST_ROOT_PATH_CHARACTERS, MOST_ROOT_PATHS, InvalidUrl, parse_root_path


def _root_path(text: str) -> str:
    try:
        return parse_root_path(text)
    except InvalidUrl as error:
        raise ValueError(str(error)) from error


RootPath = Annotated[str, Field(max_length=MOST_ROOT_PATH_CHARACTERS), AfterValidator(_root_path)]
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
    }
