"""Compares an answer of the API with its reference."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from api.reference.document import build


@cache
def document() -> dict[str, Any]:
    return build("http://127.0.0.1:8000")


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    paths = sorted(document()["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]*", path)), path) for path in paths]


@cache
def _validator(path: str, method: str, status: int) -> Draft202012Validator | None:
    operation = document()["paths"][path].get(method.lower())
    if operation is None:
        return None if status == 405 else _undocumented(path, method, status)
    response = operation["responses"].get(str(status)) or _undocumented(path, method, status)
    schema = response["content"]["application/json"]["schema"]
    return Draft202012Validator(schema | {"components": document()["components"]}, format_checker=FormatChecker())


def _undocumented(path: str, method: str, status: int) -> Any:
    raise AssertionError(f"{method} {path} answered {status}, which the reference does not have")


def check_answer(method: str, path: str, status: int, body: Any) -> None:
    """Fails when the reference has no such answer. `path` is as requested, perhaps with a query."""
    found = next((named for pattern, named in _patterns() if pattern.fullmatch(path.partition("?")[0])), None)
    if found is None:
        return  # no path of the reference: a 404, or one of a browser's pages
    validator = _validator(found, method, status)
    if validator is not None:
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]
        assert not errors, f"{method} {found} {status}: {errors[:3]}"
    if status >= 400:
        assert body.get("code"), f"{method} {found} is refused without a code: {body}"
