"""Codes that pages show have words: each that the code can record, send or answer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from api.dashboard import codes
from common.actors import Way
from common.db.events import EventType
from common.db.ownership import EndReason
from common.dns import Outcome
from common.enrolment.ownership import OwnershipClaim

ROOT = Path(__file__).parents[3]
WRITERS = {"record", "record_many", "record_difference", "recorded", "_is_recorded"}
PARTS = {"product": ("power", "secure"), "reason": get_args(EndReason)}


def recorded_actions() -> Iterator[str]:
    """Of each call that writes to the audit log; variables stand for each of their values."""
    for package in ("api", "common", "monitor", "edge"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _is_writer(node.func):
                    for argument in node.args[1:3]:
                        yield from _texts(argument)


def _is_writer(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in WRITERS and isinstance(function.value, ast.Name) and function.value.id == "audit"
    return isinstance(function, ast.Name) and function.id == "_is_recorded"


def _texts(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and "." in argument.value:
        yield argument.value
    elif isinstance(argument, ast.JoinedStr):
        text = "".join(
            str(part.value)
            if isinstance(part, ast.Constant)
            else f"{{{ast.unparse(part.value)}}}"
            if isinstance(part, ast.FormattedValue)
            else ""
            for part in argument.values
        )
        name = next(each for each in PARTS if f"{{{each}}}" in text)
        yield from (text.replace(f"{{{name}}}", value) for value in PARTS[name])


def test_each_action_of_the_audit_log_has_words() -> None:
    actions = set(recorded_actions())
    assert len(actions) > 30
    assert actions <= codes.ACTIONS.keys()


def test_each_code_of_events_and_dns_has_words() -> None:
    assert set(get_args(EventType)) == codes.EVENT_TYPES.keys()
    assert {each.value for each in Outcome} == codes.OUTCOMES.keys()
    assert {each.value for each in OwnershipClaim} <= codes.CLAIMS.keys()
    assert set(get_args(Way)) == codes.WAYS.keys()


def test_a_code_without_words_is_readable() -> None:
    assert codes.action("user_key.expire") == "User key: expire"
