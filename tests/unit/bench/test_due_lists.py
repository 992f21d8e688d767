"""The bench of due lists measures claims of what is not due, and refuses to take others for them."""

from __future__ import annotations

from typing import cast

import pytest

from bench.due_lists import claim_none
from common.db.pool import Connection
from common.errors import FrontageError

CONNECTION = cast("Connection", object())


async def claim_two(_connection: Connection) -> list[str]:
    return ["one", "another"]


async def claim_nothing(_connection: Connection) -> list[str]:
    return []


async def test_rows_that_have_fallen_due_end_the_measurement() -> None:
    with pytest.raises(FrontageError, match="2 rows are due"):
        await claim_none(claim_two, CONNECTION)


async def test_a_claim_of_nothing_is_measured() -> None:
    await claim_none(claim_nothing, CONNECTION)
