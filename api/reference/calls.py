"""What the handbook's page of the API shows at each operation: how it is called from programs, and a call to try."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any, Final
from urllib.parse import quote

from api.operations import OPERATIONS, Operation
from api.operations.parameters import EXAMPLE_IDS
from api.pages.samples import Call, render_samples, write_samples

_JSON: Final = "application/json"


def render_calls(base_url: str) -> dict[str, str]:
    """Return HTML by the headings of the page, such as ``POST /power``; `base_url` is where the API is reached."""
    return {f"{each.method} {each.path}": _render(each, base_url) for each in OPERATIONS}


def example_call(operation: Operation[Any], base_url: str) -> Call:
    """Return an operation's call with values in the places of its parameters."""
    return Call(
        operation.method,
        base_url + example_path(operation),
        operation.example,
        has_token=not operation.is_open,
        has_application=not operation.is_open and operation.has_application,
        streams=operation.media_type != _JSON,
    )


def example_path(operation: Operation[Any]) -> str:
    """Return the path with values in the places of its names, and the queries that the operation needs."""
    path = re.sub(r"\{(\w+)\}", lambda found: _value(operation, found[1]), operation.path)
    needed = "&".join(f"{each.name}=…" for each in operation.queries if each.is_required)
    return path + (f"?{needed}" if needed else "")


def _value(operation: Operation[Any], name: str) -> str:
    return quote(EXAMPLE_IDS[operation.paths[name] if name == "id" else name])


def _render(operation: Operation[Any], base_url: str) -> str:
    samples = render_samples(write_samples(example_call(operation, base_url)))
    return samples + f"<div {' '.join(_attributes(operation))}></div>" if operation.media_type == _JSON else samples


def _attributes(operation: Operation[Any]) -> Iterator[str]:
    yield from ('class="call"', f'data-method="{operation.method}"', f'data-path="{escape(example_path(operation))}"')
    if operation.example is not None:
        yield f'data-body="{escape(json.dumps(operation.example, indent=2, ensure_ascii=False))}"'
    if operation.is_open:
        yield "data-open"
