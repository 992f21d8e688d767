"""Locks by name: one holder a name, no wait for another name, and none for ever."""

from __future__ import annotations

import pytest

from common.enrolment.name_locks import NameLocks
from common.errors import DatabaseUnavailable


async def test_a_name_has_one_holder_and_other_names_do_not_wait() -> None:
    locks = NameLocks(within_seconds=0.01)
    async with locks.hold("a.test"), locks.hold("b.test"):
        with pytest.raises(DatabaseUnavailable):
            async with locks.hold("a.test"):
                raise AssertionError
    async with locks.hold("a.test"):
        pass


async def test_a_holder_that_fails_gives_the_name_back() -> None:
    locks = NameLocks()
    with pytest.raises(KeyError):
        async with locks.hold("a.test"):
            raise KeyError
    async with locks.hold("a.test"):
        pass
