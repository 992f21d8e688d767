"""The words of the API's reference: each property has some, and none are for a property that is gone."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from api.reference.document import build


@pytest.fixture(scope="module")
def properties() -> dict[tuple[str, str], str]:
    models = build("http://127.0.0.1:8000")["components"]["schemas"]
    return {
        (model, name): field.get("description", "")
        for model, schema in models.items()
        for name, field in schema.get("properties", {}).items()
    }


def test_every_property_is_described(properties: dict[tuple[str, str], str]) -> None:
    bare = [f"{model}.{name}" for (model, name), words in properties.items() if not words]
    assert bare == [], "give the field a docstring, or its name a line in api/reference/glossary.json"


def test_no_words_are_for_a_property_that_is_gone(properties: dict[tuple[str, str], str]) -> None:
    words = json.loads(resources.files("api.reference").joinpath("glossary.json").read_text("utf-8"))
    named = {name for _, name in properties} | {f"{model}.{name}" for model, name in properties}
    assert set(words) - named == set()


def test_each_model_has_a_title_of_its_own() -> None:
    """Generators of typed clients name their classes so, and leave out what two models would share."""
    models = build("http://127.0.0.1:8000")["components"]["schemas"]
    titles = [schema["title"] for schema in models.values() if "title" in schema]
    assert len(titles) == len(set(titles)) > 50
