"""Lists that may be narrowed: conditions only for what was asked, so that each form has the plan its index gives."""

from __future__ import annotations


def narrow(values: list[object], **asked: object) -> str:
    """`` and <column> = $n`` for each column asked for; its value joins `values`.

    Column names are the caller's constants, never from outside.
    """
    condition = ""
    for column, value in asked.items():
        if value is not None:
            values.append(value)
            condition += f" and {column} = ${len(values)}"
    return condition
