"""The busiest domains, in memory that does not grow."""

from __future__ import annotations

import random
from collections import Counter

from edge.proxy.busiest_domains import BusiestDomains


def test_a_steady_rate_is_told_as_it_is_and_forgotten_when_it_ends() -> None:
    tested = BusiestDomains()
    for _ in range(1200):
        tested.settle(0.5, {"a.example": 5})
    assert 9.8 < tested.top()["a.example"] < 10.2
    tested.settle(3600, {})
    assert tested.top() == {}


def test_the_busiest_are_found_among_many_and_most_comes_first() -> None:
    tested, chance = BusiestDomains(), random.Random(1)
    for _ in range(600):
        counted = Counter(f"{chance.randrange(100_000)}.example" for _ in range(300))
        tested.settle(0.5, counted | {f"busy-{rank}.example": 100 - rank * 5 for rank in range(10)})
    shown = list(tested.top())
    assert shown[:10] == [f"busy-{rank}.example" for rank in range(10)]
    assert len(shown) == 20
    assert len(tested._rates) == 200


def test_one_that_comes_late_is_never_told_too_low() -> None:
    tested = BusiestDomains()
    tested.settle(0.5, {f"{number}.example": 1 + number for number in range(400)})
    tested.settle(0.5, {"late.example": 6000})
    assert tested.top()["late.example"] >= 100
