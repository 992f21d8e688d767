"""What the reference holds of one operation: what it takes, what it answers, and which errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from common.accounts import Permission

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    schema: Mapping[str, Any]
    words: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """`errors`: the statuses beside those of every operation. `is_open`: without authentication. `example` is a body
    that a test sends."""

    method: Method
    path: str
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
    permission: Permission | None = None
    """What the user of an API key needs to have; without one, `VIEW` where it is read and `CHANGE` elsewhere."""
    by_key_alone: bool = False
    """API keys of users open it, tokens of applications do not."""
    has_application: bool = True
    """It is about the application that the header ``applicationId`` names."""

    @property
    def needed(self) -> Permission:
        return self.permission or (Permission.VIEW if self.method == "GET" else Permission.CHANGE)
