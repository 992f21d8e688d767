"""The session for other people's addresses: what was not checked is not dialled, whatever the URL says."""

from __future__ import annotations

from ipaddress import ip_network

import aiohttp
import pytest

from bench.lab.sink import WebhookSink
from common.addresses import AddressPolicy
from common.pinned import pinned_session


async def post(policy: AddressPolicy, host: str, addresses: list[str], sink: WebhookSink) -> int:
    async with pinned_session(policy, addresses, longest_seconds=5) as session:
        url = f"http://{host}:{sink.url.rpartition(':')[2]}/"
        async with session.post(url, allow_redirects=False) as response:
            return response.status


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "hooks.partner.test"])
async def test_socket_to_a_refused_address_is_never_made(sink: WebhookSink, host: str) -> None:
    with pytest.raises(aiohttp.ClientConnectorError):
        await post(AddressPolicy((), ()), host, ["127.0.0.1"], sink)
    assert sink.deliveries == []


async def test_refused_addresses_are_passed_over_for_an_allowed_one(sink: WebhookSink) -> None:
    policy = AddressPolicy([ip_network("127.0.0.1/32")], ())
    assert await post(policy, "hooks.partner.test", ["127.0.0.2", "::1", "127.0.0.1"], sink) == 204


async def test_names_lead_to_the_addresses_given_and_nowhere_else(sink: WebhookSink) -> None:
    """``localhost`` would be found by the system's resolver."""
    policy = AddressPolicy([ip_network("127.0.0.0/8")], ())
    with pytest.raises(aiohttp.ClientConnectorError):
        await post(policy, "localhost", ["127.0.0.2"], sink)
    assert sink.deliveries == []
