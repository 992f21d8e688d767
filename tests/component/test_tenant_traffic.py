"""Nothing of one tenant reaches the other; ``python -m tests.fuzz_tenants`` runs as many sequences as wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.peers import edge
from tests.component.tenant_traffic import run_all, two_tenants


@pytest.mark.parametrize("service_auth", [{"a": b"secret-1", "b": b"secret-2"}, {"b": b"secret-2"}])
async def test_nothing_of_one_tenant_reaches_the_other(tmp_path: Path, service_auth: dict[str, bytes]) -> None:
    async with edge(tmp_path) as proxy, two_tenants(proxy, service_auth) as world:
        tally = await run_all(world, iter(range(300)), at_once=8)
        assert tally.whole > tally.by_edge + tally.broken_off
