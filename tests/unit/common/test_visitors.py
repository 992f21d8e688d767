"""Networks as they are written and as addresses are looked up in them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.ip_addresses import IPAddress, Network
from common.visitors import InvalidNetwork, NetworkSet, parse_network

NETWORKS = st.one_of(
    st.tuples(st.ip_addresses(v=4), st.integers(0, 32)), st.tuples(st.ip_addresses(v=6), st.integers(0, 128))
).map(lambda pair: ip_network(pair, strict=False))


@given(st.lists(NETWORKS, max_size=5), st.ip_addresses(), st.data())
def test_an_address_is_in_a_set_as_it_is_in_one_of_its_networks(
    networks: list[Network], address: IPAddress, data: st.DataObject
) -> None:
    near = [network.network_address for network in networks] + [network.broadcast_address for network in networks]
    asked = data.draw(st.sampled_from([address, *near]))
    expected = any(asked.version == network.version and asked in network for network in networks)
    assert (asked in NetworkSet(networks)) == expected


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ],
)
def test_a_network_has_one_form(text: str, canonical: str) -> None:
    assert str(parse_network(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "shop.example", "192.0.2.7/24", "192.0.2.0/33", "192.0.2", "fe80::1%eth0/64", "*"]
)
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(InvalidNetwork):
        parse_network(text)
