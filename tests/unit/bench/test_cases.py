from __future__ import annotations

import pytest

from bench import cases
from bench.cases import Case, CostLimit, Load

CASE = Case("http-1k", "http 1 KB", cases.HTTP, Load.SAME, bar=CostLimit(1.25, "nginx"))


def test_without_patterns_every_case_runs() -> None:
    assert cases.select(None) == cases.CASES


def test_patterns_choose_in_the_table_s_order() -> None:
    assert [case.key for case in cases.select("wss, http-1k*")] == ["http-1k", "http-1k-varied", "wss"]


def test_a_pattern_that_means_nothing_is_named() -> None:
    with pytest.raises(ValueError, match="no case spdy"):
        cases.select("http-1k,spdy")


def test_keys_are_unique() -> None:
    assert len({case.key for case in cases.CASES}) == len(cases.CASES)


@pytest.mark.parametrize(("ours", "is_met"), [(12.5, True), (12.6, False)])
def test_the_bar_is_met_up_to_its_factor(ours: float, is_met: bool) -> None:
    verdict = cases.judge(CASE, {"nginx": 10.0, "ours": ours}, "ours")
    assert verdict is not None
    assert (verdict.ratio, verdict.is_met) == (ours / 10, is_met)


def test_no_verdict_without_the_peer_of_the_bar() -> None:
    assert cases.judge(CASE, {"HAProxy": 10.0, "ours": 9.0}, "ours") is None
