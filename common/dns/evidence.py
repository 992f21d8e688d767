"""Evidence: which server answered what, and when, in a size that a row can carry."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from common.dns.questions import Answer, Question

MOST_STATEMENTS = 32
_MOST_VALUES = 4
_MOST_CHARACTERS = 160

Role = Literal["resolver", "authority"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One server's answer to one question. `server` is ``host:port``."""

    at: datetime
    role: Role
    server: str
    question: Question
    answer: Answer


def as_json(statements: Iterable[Statement], doubted: Collection[Question]) -> list[dict[str, Any]]:
    """Return statements as JSON, in the order they were made.

    Where there are too many, those about `doubted` questions stay.
    """
    kept = list(statements)
    if len(kept) > MOST_STATEMENTS:
        kept.sort(key=lambda statement: statement.question not in doubted)
        kept = sorted(kept[:MOST_STATEMENTS], key=lambda statement: statement.at)
    return [_as_json(statement) for statement in kept]


def _as_json(statement: Statement) -> dict[str, Any]:
    (name, kind), answer = statement.question, statement.answer
    fields: dict[str, Any] = {
        "at": statement.at.isoformat(timespec="milliseconds"),
        "role": statement.role,
        "server": statement.server,
        "name": name,
        "type": kind,
        "outcome": answer.outcome.value,
    }
    if answer.values:
        fields["values"] = [value[:_MOST_CHARACTERS] for value in answer.values[:_MOST_VALUES]]
    return fields
