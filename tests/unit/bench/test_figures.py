from __future__ import annotations

from bench.figures import Figure


def test_p99_is_a_measurement_that_one_in_a_hundred_exceeds() -> None:
    figure = Figure("change", "p99 ≤ 20 ms", [float(number) for number in range(500, 0, -1)])
    assert figure.p99 == 495
    assert figure.median == 250.5


def test_p99_of_few_measurements_is_the_largest() -> None:
    assert Figure("start", "≤ 5 s", [3.0, 1.0, 2.0]).p99 == 3.0
