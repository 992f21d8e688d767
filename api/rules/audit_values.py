"""Values of the audit log in words, for the dashboard and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A setting in words, before and after a change.

    None: the entry has no such side, as that of something created or deleted.
    """

    name: str
    before: str | None
    after: str | None


def changes_in_words(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Change]:
    """Describe the settings that an entry's `before` and `after` hold; of what was created, only those it has."""
    was, becomes = before or {}, after or {}
    names = [name for name in {**was, **becomes} if was or becomes[name] not in (None, "", [], False)]
    return [
        Change(
            name.replace("_", " "),
            value_in_words(was[name]) if name in was else None,
            value_in_words(becomes[name]) if name in becomes else None,
        )
        for name in names
    ]


def value_in_words(value: object) -> str:
    """Describe a value, as ``on``, ``off``, ``none`` or ``/static, /media``."""
    match value:
        case bool():
            return "on" if value else "off"
        case list() if value:
            return ("; " if isinstance(value[0], dict) else ", ").join(map(value_in_words, value))
        case dict() if value:
            return ", ".join(f"{name} {value_in_words(each)}" for name, each in value.items())
        case None | "" | [] | {}:
            return "none"
        case _:
            return str(value)
