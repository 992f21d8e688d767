from __future__ import annotations

from bench.hello_flood import client_hello, is_alert
from bench.scale import Sample, growth_bytes
from bench.visitors import VisitTimes


def test_growth_leaves_out_the_time_of_warming_up() -> None:
    samples = [Sample(minute, held) for minute, held in enumerate([10, 60, 100, 100, 100, 101, 103, 103])]
    assert growth_bytes(samples) == 3


def test_growth_of_very_few_samples() -> None:
    assert growth_bytes([Sample(0, 5)]) == 0


def test_shares_of_visitors() -> None:
    seen = VisitTimes(seconds=[float(number) for number in range(100, 0, -1)])
    assert seen.at_most(0.5) == 51
    assert seen.at_most(0.99) == 100


def test_a_hello_asks_for_its_name() -> None:
    hello = client_hello("0123456789abcdef.flood.localhost")
    assert hello[:1] == b"\x16"
    assert hello.count(b"0123456789abcdef.flood.localhost") == 1


def test_alerts_are_told_from_other_answers() -> None:
    assert is_alert(b"\x15\x03\x03\x00\x02\x02\x70")
    assert not is_alert(b"\x16\x03\x03\x00\x7a")
    assert not is_alert(b"")
