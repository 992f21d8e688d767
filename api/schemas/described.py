"""Models whose attributes' docstrings are their descriptions in the API's reference.

pydantic's own way, ``use_attribute_docstrings``, reads the source of each class when it is defined: half of the time
that the API took to start. This one reads each module once, when the reference is built.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue


class Described(BaseModel):
    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for each in cls.__mro__:
            for name, words in _attribute_docstrings(each.__module__).get(each.__qualname__, {}).items():
                if name in properties:
                    properties[name].setdefault("description", words)
        return schema


@cache
def _attribute_docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """By the names of class and attribute; of classes that stand in no other."""
    path = inspect.getsourcefile(__import__(module, fromlist=["_"])) if module != "builtins" else None
    if path is None:
        return MappingProxyType({})
    with open(path, encoding="utf-8") as source:
        classes = [each for each in ast.parse(source.read()).body if isinstance(each, ast.ClassDef)]
    return MappingProxyType({each.name: _docstrings_of(each) for each in classes})


def _docstrings_of(definition: ast.ClassDef) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for attribute, after in zip(definition.body, definition.body[1:], strict=False):
        match attribute, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = inspect.cleandoc(words)
    return found
