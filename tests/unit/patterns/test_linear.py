"""No pattern of the product takes more than linear time, whatever it is fed. Steps are counted, not time."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import pytest
from multidict import MultiDict

from api.pages.handbook import Handbook
from api.schemas.queries import parse_search
from common.db import schema
from common.domain_check.providers import provider_table
from edge.http.head_template import HeadTemplate
from edge.http.request import HeadLimits, parse_any
from tests.unit.patterns.collected import Call, Found, collect, watching
from tests.unit.patterns.hostile import HostileTexts
from tests.unit.patterns.steps import Program, TooManySteps

_STEPS_A_CHARACTER: Final = 40  # the costliest pattern of the product takes 12
_FIRST_LENGTH: Final = 512  # of every hostile text; the costliest grow
_LENGTHS: Final = (32 * 1024, 128 * 1024)
_GROWN: Final = 2
_OF_ONE_CALL: Final = 4  # patterns of one call differ in what they quote
# Reads files of ours alone, when the assets are built.
_OF_OUR_OWN_FILES: Final = {r"/\*\*.*?\*/ ?"}

_OLD: Final = {
    "max-forwards": (rb"\r\nmax-forwards:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n|\Z)", "findall"),
    "refresh": (rb"([^;,]*[;,]\s*(?:url\s*=\s*)?)(['\"]?)(.*?)\2\s*", "fullmatch"),
    "caa": (r"[ \t]*([a-z0-9.-]*)[ \t]*(?:;(.*))?", "fullmatch"),
    "nested": (r"(?:[a-z]+-?)+", "fullmatch"),
    "sought": (r"[a-z]+\.", "search"),
    "two repeats": (r"//([^/?#]*)(.*)", "fullmatch"),
}


@cache
def _collected() -> tuple[list[Found], list[Call]]:
    return collect()


def _patterns() -> list[Found]:
    """Every pattern, once, with all its uses."""
    found, _ = _collected()
    merged: dict[tuple[Any, int], Found] = {}
    for each in [*found, *_built()]:
        key = (each.pattern.pattern, each.pattern.flags)
        before = merged.get(key)
        # One use that the source does not tell may be a search.
        methods = each.methods if before is None else before.methods | each.methods
        is_known = bool(each.methods) and (before is None or bool(before.methods))
        merged[key] = Found(each.where, each.pattern, methods if is_known else frozenset())
    return [each for each in merged.values() if each.pattern.pattern not in _OF_OUR_OWN_FILES]


@cache
def _built() -> list[Found]:
    """What functions compile when they are called, from hostile values."""
    values = (b"a", b"b")
    lines = b"".join(b"\r\nField-%d: %%b" % number for number in range(8))
    first, second = (b"GET / HTTP/1.1\r\nHost: a.test" + lines % ((value,) * 8) + b"\r\n\r\n" for value in values)
    provider_table.cache_clear()
    with watching() as seen:
        Handbook.load().show_hits("((a+)+)+* certificate")
        parse_search(MultiDict(search="a" * 30))
        provider_table()
        schema._oldest_program("a" * 99, schema.REVISION)
        HeadTemplate.learn(first, second, parse_any(second, HeadLimits()))
    _, calls = _collected()
    by_call: dict[Call, list[re.Pattern[Any]]] = {}
    for path, line, pattern in seen:
        for call in calls:
            if call.is_at(path, line):
                by_call.setdefault(call, []).append(pattern)
    return [
        Found(call.where, pattern, call.methods)
        for call, patterns in by_call.items()
        for pattern in sorted(patterns, key=lambda each: len(each.pattern))[-_OF_ONE_CALL:]
    ]


def _costliest(found: Found) -> list[tuple[int, int]]:
    """Return length and steps of the worst texts, at most `_GROWN` of each length."""
    program = Program(found.pattern)
    texts = HostileTexts(program)

    def count(kind: Any, length: int) -> int:
        text = texts.text(kind, length)
        limit = 2 * _STEPS_A_CHARACTER * length
        is_search = not found.is_only_matched
        try:
            steps = [program.count(text, is_full=True, is_search=False, limit=limit)]
            if not found.is_only_full:
                steps.append(program.count(text, is_full=False, is_search=is_search, limit=limit))
        except TooManySteps:
            return limit
        return max(steps)

    worst = sorted(texts.kinds, key=lambda kind: count(kind, _FIRST_LENGTH), reverse=True)[:_GROWN]
    return [(length, count(kind, length)) for length in _LENGTHS for kind in worst]


@pytest.mark.parametrize("part", range(8))
def test_every_pattern_of_the_product_is_linear(part: int) -> None:
    for found in sorted(_patterns(), key=lambda each: str(each.pattern.pattern))[part::8]:
        for length, steps in _costliest(found):
            assert steps <= _STEPS_A_CHARACTER * length, (found.where, found.pattern.pattern, length, steps)


@pytest.mark.parametrize(("pattern", "method"), _OLD.values(), ids=_OLD)
def test_a_quadratic_pattern_is_found(pattern: str | bytes, method: str) -> None:
    found = Found("", re.compile(pattern, re.IGNORECASE), frozenset({method}))
    assert any(steps > _STEPS_A_CHARACTER * length for length, steps in _costliest(found))


def test_every_pattern_is_collected() -> None:
    found, only_in_functions = _collected()
    built = {each.where for each in _built()}
    for call in only_in_functions:
        assert call.where in built, f"{call.where} compiles what no test has seen: add a call of it to _built"
    assert len(found) > 90


def test_the_count_follows_re() -> None:
    """The engine that is counted finds what `re` finds."""
    for pattern, texts in {
        r"(a|ab)(c|bcd)(d*)": ("abcd", "acd", "abc", "abcdx"),
        r"(?:a*)*b": ("aab", "aa"),
        r"(['\"]?)(.*?)\1\s*": ("'a' ", "'a", "a"),
        r"(?=a)[ab]{2,3}+b": ("aabb", "abb", "bab"),
        r"(?!ab)(?:[ab]|cd)+?": ("ab", "bacd", "c"),
        r"(?<=x)?(?i:ab)c$": ("ABc", "abC"),
    }.items():
        compiled = re.compile(pattern)
        program = Program(compiled)
        for text in texts:
            assert program.matches(text) == bool(compiled.fullmatch(text)), (pattern, text)
