"""The state of the installation as JSON: what `frontage status --json` prints and ``GET /operations`` answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from common.db.status import InstallationStatus


def status_document(status: InstallationStatus, problems: Sequence[str], notices: Sequence[str]) -> dict[str, Any]:
    """Return the state of the installation as JSON.

    `problems`: what an operator should look at now; `notices`: what is no fault. In sentences.
    """
    figures: dict[str, Any] = _in_camel_case(asdict(status))
    return {"problems": list(problems), "notices": list(notices)} | figures


def _in_camel_case(value: Any) -> Any:
    """Return a value with its names in camel case."""
    if isinstance(value, dict):
        return {_camel(name): _in_camel_case(each) for name, each in value.items()}
    return [_in_camel_case(each) for each in value] if isinstance(value, list | tuple) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
