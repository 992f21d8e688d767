from ipaddress import ip_address, ip_network

import pytest

from common.addresses import AddressPolicy, is_address_of_this_machine, tenant_policy
from common.errors import AddressRefused
from common.settings import load

NOBODY = AddressPolicy((), ())


def is_allowed(policy: AddressPolicy, address: str, port: int = 443) -> bool:
    try:
        policy.check(ip_address(address), port)
    except AddressRefused:
        return False
    return True


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "100.128.0.1", "172.32.0.1", "198.20.0.1", "2606:4700::1111", "2001:200::1", "64:ff9b::101:101",
     "::ffff:1.1.1.1", "2002:101:101::1"],
)  # fmt: skip
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(NOBODY, address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "100::1", "2001:2::1", "2001:10::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1",
        "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "1::1",
        "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::101:101", "64:ff9b:1:fffe::a00:1", "2002:7f00:1::1", "2002:a00:1::", "2001:0:101:101::1",
        "::ffff:0:127.0.0.1", "168.63.129.16", "::ffff:168.63.129.16",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(NOBODY, address)


def test_the_operator_can_allow_networks() -> None:
    policy = AddressPolicy((ip_network("10.0.0.0/8"), ip_network("fd00::/8")), ())

    assert is_allowed(policy, "10.1.2.3")
    assert is_allowed(policy, "fd00::1")
    assert is_allowed(policy, "::ffff:10.1.2.3")
    assert is_allowed(policy, "64:ff9b::a01:203")
    assert not is_allowed(policy, "192.168.0.1")
    assert not is_allowed(policy, "::ffff:192.168.0.1")


def test_denied_networks_win_over_public_and_over_allowed_ones() -> None:
    denied = (ip_network("1.1.1.0/24"), ip_network("10.9.0.0/16"))
    policy = AddressPolicy((ip_network("10.0.0.0/8"),), (), denied=denied)

    assert is_allowed(policy, "10.1.2.3")
    assert is_allowed(policy, "1.1.2.1")
    for address in ("1.1.1.1", "::ffff:1.1.1.1", "64:ff9b::101:101", "10.9.2.3"):
        assert not is_allowed(policy, address)


def test_the_policy_of_a_role_follows_its_settings() -> None:
    policy = tenant_policy(
        load({"FRONTAGE_DENY_ADDRESSES": "1.1.1.0/24", "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"})
    )

    assert not is_allowed(policy, "1.1.1.1")
    assert is_allowed(policy, "127.0.0.1", 9000)
    assert not is_allowed(policy, "127.0.0.1", 9181), "an admin listener"
    assert not is_allowed(policy, "127.0.0.1", 9182), "an admin listener"


def test_own_listeners_are_refused_even_where_their_network_is_allowed() -> None:
    policy = AddressPolicy((ip_network("127.0.0.0/8"), ip_network("::/0")), [("127.0.0.1", 8080), ("::1", 8443)])

    assert is_allowed(policy, "127.0.0.1", 9000)
    assert not is_allowed(policy, "127.0.0.1", 8080)
    assert not is_allowed(policy, "::ffff:127.0.0.1", 8080)
    assert not is_allowed(policy, "64:ff9b::7f00:1", 8080)
    assert not is_allowed(policy, "2002:7f00:1::", 8080)
    assert not is_allowed(policy, "::1", 8443)
    assert is_allowed(policy, "::1", 8080)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:0.0.0.0"])
def test_no_address_at_all_is_dialled_as_loopback_and_may_be_a_listener_of_ours(address: str) -> None:
    allowed = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    policy = AddressPolicy(allowed, [("127.0.0.1", 8080), ("::1", 8080)])

    assert not is_allowed(policy, address, 8080)
    assert is_allowed(policy, address, 9000)


@pytest.mark.parametrize("listener", ["0.0.0.0", "::", "localhost"])
def test_a_wildcard_listener_is_every_address_of_this_machine(listener: str) -> None:
    allowed = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    ours = ip_address("203.0.113.9")
    policy = AddressPolicy(allowed, [(listener, 8080)], is_own_address=lambda address: address == ours)

    assert not is_allowed(policy, "203.0.113.9", 8080)
    assert not is_allowed(policy, "::ffff:203.0.113.9", 8080)
    assert is_allowed(policy, "203.0.113.9", 9000)
    assert is_allowed(policy, "203.0.113.10", 8080)


def test_this_machine_knows_its_own_addresses() -> None:
    assert is_address_of_this_machine(ip_address("127.0.0.1"))
    assert is_address_of_this_machine(ip_address("127.3.2.1"))
    assert is_address_of_this_machine(ip_address("0.0.0.0"))
    assert not is_address_of_this_machine(ip_address("192.0.2.77"))
