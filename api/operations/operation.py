"""One operation of the API: its route, its handler, and what the reference states of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from aiohttp import web
from pydantic import BaseModel

from common.accounts import Permission

Method = Literal["GET", "POST", "PUT", "DELETE"]
Handlers = TypeVar("Handlers")
HandlerOf: TypeAlias = Callable[[Handlers, web.Request], Awaitable[web.StreamResponse]]
"""A method of a class of handlers, such as ``PowerHandlers.post``."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter, as the reference shows it."""

    name: str
    schema: Mapping[str, Any]
    words: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Operation(Generic[Handlers]):
    """A method and a path, what they take and answer, and the handler that does so.

    `errors`: the statuses beside those of every operation. `is_open`: without authentication. `example` is a body that
    a test sends.
    """

    method: Method
    path: str
    handler: HandlerOf[Handlers]
    id: str
    tag: str
    summary: str
    answer: Any
    status: int = 200
    body: type[BaseModel] | None = None
    example: Mapping[str, Any] | None = None
    queries: tuple[Query, ...] = ()
    errors: tuple[int, ...] = ()
    is_open: bool = False
    has_page: bool = False
    """Browsers get HTML."""
    media_type: str = "application/json"
    paths: Mapping[str, str] = field(default_factory=dict)
    """What stands for each name in the path."""
    has_representation: bool = False
    """`Prefer: return=representation` has it answer with what was changed."""
    permission: Permission | None = None
    """What the user of an API key needs to have; without one, `VIEW` where it is read and `CHANGE` elsewhere."""
    by_key_alone: bool = False
    """API keys of users open it, tokens of applications do not."""
    has_application: bool = True
    """It is about the application that the header ``applicationId`` names."""

    @property
    def needed(self) -> Permission:
        """Return the permission that the user of an API key needs."""
        return self.permission or (Permission.VIEW if self.method == "GET" else Permission.CHANGE)
