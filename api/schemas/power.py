"""Power's bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from api.schemas.bodies import Metadata, ProductBody, Url
from api.schemas.response_policy import DomainResponsePolicy
from api.schemas.visitors import Visitors
from common.urls import MOST_ROOT_PATH_CHARACTERS, MOST_ROOT_PATHS, InvalidUrl, parse_root_path


def _root_path(text: str) -> str:
    try:
        return parse_root_path(text)
    except InvalidUrl as error:
        raise ValueError(str(error)) from error


RootPath = Annotated[str, Field(max_length=MOST_ROOT_PATH_CHARACTERS), AfterValidator(_root_path)]
RootPaths = Annotated[list[RootPath], Field(max_length=MOST_ROOT_PATHS)]


class PowerBody(ProductBody):
    """POST /power."""

    application_url: Url = Field(alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")
    metadata: Metadata | None = None
    visitors: Visitors | None = None
    response_policy: DomainResponsePolicy | None = Field(None, alias="responsePolicy")


class PowerChange(ProductBody):
    """PUT /power. What is left out stays."""

    application_url: Url | None = Field(None, alias="applicationUrl")
    root_path_access: RootPaths | None = Field(None, alias="powerRootPathAccess")
    metadata: Metadata | None = None
    visitors: Visitors | None = None
    response_policy: DomainResponsePolicy | None = Field(None, alias="responsePolicy")
