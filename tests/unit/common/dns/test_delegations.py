"""What is remembered of zones' servers: for its TTL, within bounds, and below the registered name."""

from __future__ import annotations

from common.dns.delegations import Delegation, Delegations
from common.host_ports import HostPort

APEX = "shop.example"


def delegation(zone: str = APEX, seconds: float = 600.0) -> Delegation:
    return Delegation(zone, (HostPort("192.0.2.53", 53),), seconds)


def test_the_nearest_zone_is_found_until_its_ttl_has_passed() -> None:
    delegations = Delegations(longest_seconds=3600.0)
    delegations.remember(delegation(), now=0.0)
    delegations.remember(delegation(f"eu.{APEX}", 60.0), now=0.0)
    assert delegations.find(f"www.eu.{APEX}", APEX, now=59.0) == delegation(f"eu.{APEX}", 60.0)
    assert delegations.find(f"www.eu.{APEX}", APEX, now=61.0) == delegation()
    assert delegations.find(f"www.eu.{APEX}", APEX, now=601.0) is None
    assert delegations.find("www.other.example", "other.example", now=0.0) is None


def test_nothing_is_remembered_for_longer_than_the_check_interval() -> None:
    delegations = Delegations(longest_seconds=300.0)
    delegations.remember(delegation(seconds=86_400.0), now=0.0)
    assert delegations.find(APEX, APEX, now=299.0)
    assert delegations.find(APEX, APEX, now=301.0) is None


def test_servers_of_a_zone_above_the_registered_name_are_not_used() -> None:
    delegations = Delegations(longest_seconds=3600.0)
    delegations.remember(delegation("example"), now=0.0)
    assert delegations.find(f"www.{APEX}", APEX, now=0.0) is None


def test_a_delegation_without_servers_or_without_a_ttl_is_not_remembered() -> None:
    delegations = Delegations(longest_seconds=3600.0)
    delegations.remember(Delegation(APEX, (), 600.0), now=0.0)
    delegations.remember(delegation(seconds=0.0), now=0.0)
    assert delegations.find(APEX, APEX, now=0.0) is None


def test_the_oldest_of_too_many_is_forgotten() -> None:
    delegations = Delegations(longest_seconds=3600.0, most_zones=2)
    for number in range(3):
        delegations.remember(delegation(f"n{number}.example"), now=0.0)
    found = [delegations.find(f"n{number}.example", f"n{number}.example", now=0.0) is not None for number in range(3)]
    assert found == [False, True, True]
