"""Values of the audit log in words, for the dashboard and the command line. Pure."""

from __future__ import annotations


def value_in_words(value: object) -> str:
    """``on``, ``off``, ``none``, ``/static, /media``."""
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
