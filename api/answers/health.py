"""The health of a process, for balancers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired

from typing_extensions import TypedDict

from api.notices import Notice, combined


class Health(TypedDict):
    """The health of a process."""

    status: str
    code: NotRequired[str | None]
    hint: NotRequired[str | None]


def readiness(lacking: Mapping[str, Notice]) -> Health:
    """Render that requests can be answered, and what keeps accepted work from visitors; `lacking` has its words."""
    answer: Health = {"status": "ready, but " + " and ".join(lacking) if lacking else "ready"}
    if (notice := combined(lacking.values())) is not None:
        answer["code"], answer["hint"] = notice
    return answer
