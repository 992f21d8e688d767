"""JSON schemas of bodies and answers, as the reference shows them.

pydantic's own way to read the docstrings of fields, ``use_attribute_docstrings``, reads the source of each class when
it is defined: half of the time that the API took to start. This one reads each module once, when the reference is
built.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_origin

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import TypedDictSchema, WithDefaultSchema


class AnswerSchema(GenerateJsonSchema):
    """Describes fields by their docstrings; an answer has no fields but its own.

    Defaults of null are left out: they only say that a field may be absent, and generators of typed clients take a
    field with a default for one that is always there.
    """

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a field with a default, without a default of null."""
        found = super().default_schema(schema)
        return {name: value for name, value in found.items() if name != "default" or value is not None}

    def typed_dict_schema(self, schema: TypedDictSchema) -> JsonSchemaValue:
        """Return the schema of an answer, closed and described."""
        found = super().typed_dict_schema(schema)
        if "extra_fields_behavior" not in schema.get("config", {}):
            found["additionalProperties"] = False
        for base in _bases_of(schema["cls"]):
            for name, words in _docstrings_of_module(base.__module__).get(base.__qualname__, {}).items():
                if name in found["properties"]:
                    field = found["properties"][name]
                    field.setdefault("description", words)
                    if words.startswith("Deprecated"):
                        field["deprecated"] = True
        return found


def _bases_of(kind: Any) -> Iterator[Any]:
    """Yield a `TypedDict` and those that it extends, which no `__mro__` has."""
    kind = get_origin(kind) or kind
    yield kind
    for base in getattr(kind, "__orig_bases__", ()):
        yield from _bases_of(base)


def describe(schemas: Mapping[str, Any]) -> None:
    """Describe fields without a docstring of their own by what their name means everywhere (``glossary.json``)."""
    for model, schema in schemas.items():
        if "title" in schema:  # of a list of domains and of one of certificates it is "Page": generators take titles
            schema["title"] = model.strip("_")
        for name, field in schema.get("properties", {}).items():
            if "description" not in field and (words := _glossary().get(f"{model}.{name}") or _glossary().get(name)):
                field["description"] = words


@cache
def _glossary() -> Mapping[str, str]:
    words: Mapping[str, str] = json.loads(Path(__file__).with_name("glossary.json").read_text("utf-8"))
    return words


@cache
def _docstrings_of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields by the names of class and field, of classes that stand in no other."""
    path = inspect.getsourcefile(__import__(module, fromlist=["_"])) if module.startswith("api.") else None
    if path is None:
        return MappingProxyType({})
    with open(path, encoding="utf-8") as source:
        classes = [each for each in ast.parse(source.read()).body if isinstance(each, ast.ClassDef)]
    return MappingProxyType({each.name: _docstrings_of(each) for each in classes})


def _docstrings_of(definition: ast.ClassDef) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = inspect.cleandoc(words)
    return found
