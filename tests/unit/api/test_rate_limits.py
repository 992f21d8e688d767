"""Rates are kept per key, in bounded memory; and which address a client is."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from api.client_address import client_address
from common.token_buckets import TokenBuckets


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    buckets = TokenBuckets(2.0, 5.0)
    assert [buckets.take("a", 0.0) for _ in range(5)] == [0.0] * 5
    assert buckets.take("a", 0.0) == 0.5
    assert buckets.take("b", 0.0) == 0.0, "another's bucket"
    assert buckets.take("a", 0.5) == 0.0
    assert buckets.take("a", 0.5) == 0.5
    assert [buckets.take("a", 1000.0) for _ in range(5)] == [0.0] * 5, "no more than a burst is saved"
    assert buckets.wait_seconds("a", 1000.0) == 0.5


def test_no_more_buckets_are_kept_than_may_be() -> None:
    buckets = TokenBuckets(1.0, 1.0, most=10)
    for number in range(100):
        assert buckets.take(number, 0.0) == 0.0
    assert len(buckets) == 10
    assert buckets.take(99, 0.0) > 0


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "expected"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7", "10.2.3.4"], "198.51.100.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["nonsense"], "unknown"),
        ("fd00::1", ["2001:db8:1:2:3::4"], "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", [], "192.0.2.1"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7:5678"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7, 10.2.3.4:80, [fd00::2]:443"], "198.51.100.7"),
        ("10.0.0.1", ["[2001:db8:1:2:3::4]:443"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["[2001:db8:1:2::9]"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["198.51.100.7:nonsense"], "unknown"),
        ("10.0.0.1", ["[]:80"], "unknown"),
        ("", [], "unknown"),
    ],
)
def test_a_client_is_an_address_or_an_ipv6_network(peer: str, forwarded_for: list[str], expected: str) -> None:
    assert client_address(peer, forwarded_for, PROXIES) == expected
