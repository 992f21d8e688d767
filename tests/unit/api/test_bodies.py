"""Whatever is sent, a body is understood or refused, and so is a query; nothing else comes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from api.errors import DOMAIN_NOT_VALID, INVALID_PRODUCT_BODY, Refused
from api.schemas.bodies import ProductBody, Strict, parse_body, parse_product_domain
from api.schemas.power import PowerBody, PowerChange
from api.schemas.queries import (
    parse_eligibility_query,
    parse_flag,
    parse_integer,
    parse_list_query,
    parse_optional_date,
)
from api.schemas.secure import SecureBody, SecureRemoval
from common.urls import parse_redirect_target

SCHEMAS = (ProductBody, PowerBody, PowerChange, SecureBody, SecureRemoval)
FIELDS = ("domain", "applicationUrl", "powerRootPathAccess", "redirectTo", "reason")

texts = st.text(max_size=80) | st.sampled_from(["shop.customer.test", "https://a.example/b", "bücher.example", "a..b"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=10), values, max_size=6) | values


def outcome(parse: Callable[[], Any], *, status: int) -> Any:
    """What is parsed; None when it is refused, which must be with that status."""
    try:
        return parse()
    except Refused as refused:
        refused_with = refused.refusal.status
    assert refused_with == status
    return None


@given(bodies, st.sampled_from(SCHEMAS))
def test_any_json_is_a_body_or_refused(content: Any, schema: type[Strict]) -> None:
    body = outcome(lambda: parse_body(orjson.dumps(content), schema, INVALID_PRODUCT_BODY), status=502)
    if not isinstance(body, ProductBody):
        return
    if isinstance(body, SecureBody) and body.redirect_to is not None:
        assert str(parse_redirect_target(body.redirect_to)) == body.redirect_to
    with contextlib.suppress(Refused):
        assert parse_product_domain(body.domain).text.isascii()


@given(st.binary(max_size=200), st.sampled_from(SCHEMAS))
def test_any_bytes_are_a_body_or_refused(raw: bytes, schema: type[Strict]) -> None:
    with contextlib.suppress(Refused):
        parse_body(raw, schema, INVALID_PRODUCT_BODY)


@given(st.lists(st.tuples(st.sampled_from(["page", "size", "status", "domain", "rootDomain", "from_date"]), texts)))
def test_any_query_is_understood_or_names_what_is_wrong(pairs: list[tuple[str, str]]) -> None:
    query = MultiDict(pairs)
    for parse in (
        parse_list_query,
        parse_eligibility_query,
        lambda query: parse_flag(query, "rootDomain"),
        lambda query: parse_integer(query, "page", default=0, least=0, most=5),
        lambda query: parse_optional_date(query, "from_date"),
    ):
        outcome(lambda parse=parse: parse(query), status=400)  # type: ignore[misc]


@pytest.mark.parametrize("body", [{}, {"domain": None}, {"domain": 1}, {"domain": ["a"]}, {"domain": {}}])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_product_without_its_domain_is_not_valid(schema: type[Strict], body: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        parse_body(orjson.dumps(body | {"applicationUrl": "https://a.example"}), schema, INVALID_PRODUCT_BODY)
    assert caught.value.refusal is DOMAIN_NOT_VALID


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("visitors", [], "must be an object"),
        ("metadata", "x", "must be an object"),
        ("visitors", {"rate": 1}, "visitors.rate: there is no such field"),
    ],
)
def test_a_hint_names_no_class_of_ours(field: str, value: object, hint: str) -> None:
    body = {"domain": "a.example", "applicationUrl": "https://a.example", field: value}
    with pytest.raises(Refused) as caught:
        parse_body(orjson.dumps(body), PowerBody, INVALID_PRODUCT_BODY)
    assert caught.value.hint == hint


def test_a_hint_says_where_in_a_field() -> None:
    body = {"domain": "a.example", "applicationUrl": "https://a.example", "powerRootPathAccess": ["/a", "/b c"]}
    with pytest.raises(Refused) as caught:
        parse_body(orjson.dumps(body), PowerBody, INVALID_PRODUCT_BODY)
    assert caught.value.refusal.message == "Invalid 'powerRootPathAccess' parameter"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("powerRootPathAccess[1]: a path such as /static")


@pytest.mark.parametrize("schema", SCHEMAS)
@given(content=bodies)
def test_no_refusal_shows_a_regular_expression(schema: type[Strict], content: Any) -> None:
    hint = None
    try:
        parse_body(orjson.dumps(content), schema, INVALID_PRODUCT_BODY)
    except Refused as refused:
        hint = refused.hint
    assert "pattern" not in (hint or "")
