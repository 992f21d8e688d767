"""The handbook's page of the API, from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from api.reference.document import build

_INTRODUCTION = """# API

All calls, from the same models that check requests. `/openapi.json` has this page for programs (OpenAPI 3.1): most
languages have a generator that makes a client of it. The one for Python is served beside it:
`pip install https://api.frontage.example/sdk/v1/frontage_client.tar.gz`, with its SHA-256 in `/sdk/v1/python.json`; its
README shows a call.

{description}
"""


def api_page() -> str:
    document = build("http://127.0.0.1:8000")
    models = document["components"]["schemas"]
    lines = [_INTRODUCTION.format(description=document["info"]["description"])]
    for tag in (tag["name"] for tag in document["tags"]):
        lines += [f"## {tag}", ""]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"] == [tag]:
                    lines += _operation(method.upper(), path, operation, models)
    lines += ["## Objects", ""]
    for name in sorted(_shown(document, models)):
        lines += [f"### {name}", "", *_paragraph(models[name]), *_fields(models[name], models), ""]
    return "\n".join(lines).rstrip() + "\n"


def _operation(method: str, path: str, operation: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {method} {path}", "", f"{operation['summary']}.", "")
    parameters = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
    if parameters:
        yield from ("| query | type | |", "|---|---|---|")
        yield from (f"| `{each['name']}` | {_type(each['schema'])} | {each['description']} |" for each in parameters)
        yield ""
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        model = models[content["schema"]["$ref"].rpartition("/")[2]]
        yield from _fields(model, models)
        yield from ("", "```json", orjson.dumps(content["example"]).decode(), "```", "")
    opened = f" {operation['description']}" if "description" in operation else ""
    yield from (_answers(operation["responses"]) + opened, "")


def _answers(responses: Mapping[str, Any]) -> str:
    good = next(status for status in responses if status.startswith("2"))
    schema = next(iter(responses[good]["content"].values())).get("schema")
    shown = "the events" if schema is None else _type(schema)
    errors = ", ".join(status for status in sorted(responses) if not status.startswith("2"))
    return f"Answers {good} with {shown}. Errors: {errors}."


def _fields(model: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[str]:
    properties = model.get("properties", {})
    if not properties:
        return
    required = model.get("required", ())
    yield from ("| field | type | |", "|---|---|---|")
    for name, schema in properties.items():
        words = " ".join((schema.get("description") or "").split())
        optional = "" if name in required else "optional" if not words else "Optional. "
        yield f"| `{name}` | {_type(schema)} | {optional}{words} |"


def _paragraph(model: Mapping[str, Any]) -> Sequence[str]:
    words = " ".join((model.get("description") or "").split())
    return [words, ""] if words else []


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"anyOf": choices}:
            return " or ".join(_type(choice) for choice in choices)
        case {"type": "array", **rest}:
            items = rest.get("items")
            return f"array of {_type(items)}" if items else "array"
        case {"type": "string", "format": form}:
            return str(form)
        case {"type": kind}:
            return str(kind)
    return "any"


def _shown(document: Mapping[str, Any], models: Mapping[str, Any]) -> set[str]:
    """The models that tables and sentences link to."""
    bodies = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    }
    return {name for name in models if name not in bodies}
