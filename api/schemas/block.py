"""The body of ``POST /domains/:domain/block``."""

from __future__ import annotations

from api.schemas.bodies import Strict


class BlockBody(Strict):
    """`reason`: what visitors read, at most 500 characters. `legal`: answer 451 instead of 403."""

    reason: str
    legal: bool = False
