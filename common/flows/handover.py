"""The columns `handover` and `error`: the way to a provider's consent page and back, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ReturnOutcome = Literal["done", "refused", "error"]


@dataclass(frozen=True, slots=True)
class Handover:
    """A flow's visit to a provider's consent page, and what the browser came back with.

    `url`: the consent page. `state` counts once: it is gone as soon as a browser came back with it.

    The rest is what the browser came back with.
    """

    url: str
    state: str | None = None
    returned: ReturnOutcome | None = None
    error: str | None = None
    description: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        if self.returned is None:
            return {"url": self.url, "state": self.state}
        return {
            "url": self.url,
            "returned": self.returned,
            "error": self.error,
            "description": self.description,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Handover:
        """Return the value that `as_json` stored."""
        return cls(
            stored["url"],
            stored.get("state"),
            stored.get("returned"),
            stored.get("error"),
            stored.get("description"),
        )


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """What went wrong, as a code for programs, and in words for the person with what to do next.

    `fields`: the names of the credentials that are wrong, where that is known (`common.flows.ways.CredentialField`).
    """

    code: str
    message: str
    hint: str
    fields: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "fields": list(self.fields)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FlowProblem:
        """Return the value that `as_json` stored."""
        return cls(stored["code"], stored["message"], stored["hint"], tuple(stored.get("fields", ())))
