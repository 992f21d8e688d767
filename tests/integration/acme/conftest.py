from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.faulty_ca import FaultyCa, faulty_ca
from bench.lab.pebble import Pebble, is_installed, running_pebble

from . import parts
from .parts import Answering


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not is_installed():
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason="needs Debian's pebble"))


@pytest.fixture
async def answering() -> AsyncIterator[Answering]:
    async with parts.answering() as answers:
        yield answers


@pytest.fixture
async def pebble(tmp_path: Path, answering: Answering) -> AsyncIterator[Pebble]:
    """With the habits it has by default, so that it rejects a good nonce now and then."""
    async with running_pebble(tmp_path, http_port=answering.port) as running:
        yield running


@pytest.fixture
async def faulty(pebble: Pebble) -> AsyncIterator[FaultyCa]:
    async with faulty_ca(pebble) as ca:
        yield ca
