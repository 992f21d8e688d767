"""Writes by a provider's API take turns: children that wait for a provider that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.connect.provider_api import ProviderApis
from common.connect.ways.problems import WayFailed
from common.flows.plan import Change
from common.settings import Settings, load
from tests.waiting import until

CHANGE = Change("add", "shop.customer.test", "shop", "A", (), ("192.0.2.1",), 300, 300, "")


class SilentProvider:
    """Takes connections, and closes them when it is let go."""

    def __init__(self) -> None:
        self.taken = 0
        self.let_go = asyncio.Event()
        self.url = ""

    async def take(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        await self.let_go.wait()
        writer.close()


@pytest.fixture
async def provider() -> AsyncIterator[SilentProvider]:
    silent = SilentProvider()
    server = await asyncio.start_server(silent.take, "127.0.0.1", 0)
    silent.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield silent
        silent.let_go.set()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({"FRONTAGE_STATE_DIR": str(tmp_path), "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"})


async def write(apis: ProviderApis, provider: SilentProvider, tenant: str = "one") -> str:
    """How it failed."""
    token = {"pdns_server": provider.url, "auth_token": "key"}
    with pytest.raises(WayFailed) as failed:
        await apis.write("powerdns", "customer.test", [CHANGE], token, tenant=tenant)
    return failed.value.code


async def test_a_fourth_write_of_an_application_waits_its_turn(settings: Settings, provider: SilentProvider) -> None:
    apis = ProviderApis(settings, longest_seconds=300.0, longest_wait_seconds=300.0)
    writes = [asyncio.create_task(write(apis, provider)) for _ in range(4)]
    await until(lambda: provider.taken == 3, "three children at the provider")
    other = asyncio.create_task(write(apis, provider, "another"))
    await until(lambda: provider.taken == 4, "the child of another application")
    provider.let_go.set()
    assert "rate_limited" not in await asyncio.gather(*writes, other)
    assert provider.taken >= 5


async def test_a_write_whose_turn_does_not_come_is_refused(settings: Settings, provider: SilentProvider) -> None:
    apis = ProviderApis(settings, longest_seconds=300.0, longest_wait_seconds=0.1)
    writes = [asyncio.create_task(write(apis, provider)) for _ in range(3)]
    await until(lambda: provider.taken == 3, "three children at the provider")
    assert await write(apis, provider) == "rate_limited"
    provider.let_go.set()
    assert "rate_limited" not in await asyncio.gather(*writes)


async def test_an_address_that_is_none_of_the_web_is_refused_as_an_address(
    settings: Settings, provider: SilentProvider
) -> None:
    apis = ProviderApis(settings, longest_seconds=300.0, longest_wait_seconds=0.1)
    provider.url = provider.url.replace("http", "htp")
    assert await write(apis, provider) == "address_refused"
    assert provider.taken == 0
