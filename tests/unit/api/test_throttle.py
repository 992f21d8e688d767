"""Guesses of passwords are slowed by address, by IPv6 site and by account; strangers slow no known browser."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.client_address import limited_by
from api.dashboard.throttle import Throttle
from common.secrets import load_keyring

EMAIL = "ada@acme.example"


class StoppedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 1000.0


@pytest.fixture
def throttle(tmp_path: Path) -> Throttle:
    return Throttle.of(StoppedClock(), load_keyring(tmp_path / "master.key", create=True))


def test_one_address_and_one_account_are_slowed(throttle: Throttle) -> None:
    assert [throttle.charge("192.0.2.1", f"{number}@x.test", None) for number in range(20)] == [0.0] * 20
    assert throttle.charge("192.0.2.1", "another@x.test", None) == 6.0
    for number in range(10):
        assert throttle.charge(f"198.51.100.{number}", EMAIL, None) == 0.0
    assert throttle.charge("203.0.113.1", EMAIL, None) == 30.0


def test_many_networks_of_one_ipv6_site_are_slowed_together(throttle: Throttle) -> None:
    def guess(site: str, number: int) -> float:
        return throttle.charge(limited_by(f"2001:db8:{site}:{number:x}::1"), f"{site}-{number}@x.test", None)

    assert [guess("1", number) for number in range(80)] == [0.0] * 80
    assert guess("1", 81) == 1.5
    assert throttle.charge_address(limited_by("2001:db8:1:ffff::1")) == 1.5
    assert guess("2", 1) == 0.0


def test_a_known_browser_is_slowed_by_its_own_guesses_alone(throttle: Throttle) -> None:
    device = throttle.device_cookie(None, EMAIL)
    while throttle.charge("192.0.2.1", EMAIL, None) == 0.0:
        pass
    while throttle.charge_address("192.0.2.1") == 0.0:
        pass
    assert [throttle.charge("192.0.2.1", EMAIL, device) for _ in range(10)] == [0.0] * 10
    assert throttle.charge("192.0.2.1", EMAIL, device) == 6.0
    assert throttle.charge("192.0.2.2", EMAIL, throttle.device_cookie(device, EMAIL)) == 6.0


def test_a_device_cookie_is_good_for_its_account_alone(throttle: Throttle) -> None:
    device = throttle.device_cookie(None, EMAIL)
    assert throttle.is_known(device, EMAIL)
    for other in (None, "", device[:-1], device + "0", f"x{device}"):
        assert not throttle.is_known(other, EMAIL)
    assert not throttle.is_known(device, "eve@acme.example")
    assert throttle.device_cookie(device, "eve@acme.example") != device
