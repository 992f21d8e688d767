"""Whom the edge probe may dial."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from common.edge_probe import probing_policy
from common.errors import AddressRefused
from common.settings import load

LOOPBACK = ip_address("127.0.0.1")


def test_our_own_edge_is_looked_for_at_its_plain_port_only() -> None:
    policy = probing_policy(
        load({"FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8", "FRONTAGE_EDGE_HTTP": "0.0.0.0:80"})
    )
    policy.check(LOOPBACK, 80)
    for port in (8443, 9180, 8000):
        with pytest.raises(AddressRefused):
            policy.check(LOOPBACK, port)


def test_private_addresses_are_refused_to_it_as_to_all() -> None:
    with pytest.raises(AddressRefused):
        probing_policy(load({})).check(LOOPBACK, 80)
