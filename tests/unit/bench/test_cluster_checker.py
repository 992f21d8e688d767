"""The checker of the cluster run finds what is wrong in a history, and nothing where all is right."""

from __future__ import annotations

import pytest

from bench.cluster.checker import Verdict, explain, judge_reads, judge_visits, judge_writes
from bench.cluster.history import Fault, History, Kind, Operation, Outcome

DOMAIN = "shop.customer.example"


def op(
    kind: Kind,
    value: str | None,
    began: float,
    *,
    outcome: Outcome = "ok",
    unanswered_at: float | None = None,
    domain: str = DOMAIN,
) -> Operation:
    actor = "edge1" if kind in {"visit", "ready"} else "partner"
    return Operation(actor, kind, domain, value, began, began + 0.5, outcome, unanswered_at)


WRITES = [op("write", "v1", 1), op("write", "v2", 10), op("write", "v3", 20)]


@pytest.mark.parametrize(
    ("value", "began", "stale_seconds"),
    [
        ("v1", 5, 0),
        ("v1", 10.2, 0),  # while the next is written, both are right
        ("v1", 15, 4.5),
        ("v2", 9.8, 0),
        ("v3", 60, 0),
        (None, 1.2, 0),  # not there yet
        (None, 30, 28.5),
    ],
)
def test_answer_is_stale_by_the_time_since_a_later_write_was_done(
    value: str | None, began: float, stale_seconds: float
) -> None:
    found = explain(WRITES, value, began, began + 0.5)

    assert found is not None
    assert found.stale_seconds == pytest.approx(stale_seconds)


@pytest.mark.parametrize(("value", "began"), [("v9", 30), ("v3", 5)])
def test_answer_that_no_write_explains(value: str | None, began: float) -> None:
    assert explain(WRITES, value, began, began + 0.5) is None


def test_refused_write_explains_nothing_and_an_unanswered_attempt_may_come_late() -> None:
    refused = [WRITES[0], op("write", "v2", 10, outcome="refused")]
    assert explain(refused, "v2", 15, 15.5) is None

    late = [op("write", "v1", 1, unanswered_at=9.0), op("write", "v2", 10)]
    found = explain(late, "v1", 30, 30.5)
    assert found is not None
    assert found.stale_seconds == 0


def judged(*operations: Operation, faults: tuple[Fault, ...] = (), is_lossless: bool = True) -> Verdict:
    history, verdict = History(operations=list(operations), faults=list(faults)), Verdict()
    judge_reads(history, verdict, is_lossless=is_lossless)
    judge_visits(history, verdict, [DOMAIN], max_age_seconds=10, is_lossless=is_lossless)
    judge_writes(history, verdict, is_lossless=is_lossless)
    return verdict


def wrong(verdict: Verdict) -> dict[str, int]:
    return {question: times for question, times in verdict.wrong.items() if times}


def test_right_history_has_no_finding() -> None:
    verdict = judged(*WRITES, op("read", "v1", 5), op("visit", "v1", 12), op("read", "v3", 30), op("visit", "v3", 30))

    assert verdict.is_right
    assert verdict.wrong.keys() >= {"lost writes", "stale answers", "failed requests"}


def test_write_that_is_not_read_is_lost_and_the_timeline_shows_it() -> None:
    verdict = judged(*WRITES, op("read", "v2", 22))

    assert wrong(verdict) == {"lost writes": 1}
    assert "write shop.customer.example v3: ok" in verdict.details[0]


@pytest.mark.parametrize("is_kept", [False, True])
def test_without_synchronous_replication_only_a_tail_may_be_lost(is_kept: bool) -> None:
    failover = Fault("a failover", frozenset({"db1"}), 23, 26, takes_primary=True)
    later = [op("write", "w1", 21, domain="other.example"), op("read", "w1", 30, domain="other.example")]

    verdict = judged(*WRITES, op("read", "v2", 28), *(later if is_kept else ()), faults=(failover,), is_lossless=False)

    assert wrong(verdict) == ({"lost writes": 1} if is_kept else {})


@pytest.mark.parametrize(("taken", "count"), [(19, 0), (22, 1)])
def test_restored_backup_may_lose_only_what_was_answered_after_it_was_taken(taken: float, count: int) -> None:
    restore = Fault("a backup is restored", frozenset({"db1"}), 40, 50, takes_primary=True, lost_from=taken)

    verdict = judged(*WRITES, op("read", "v2", 52), faults=(restore,), is_lossless=False)

    assert wrong(verdict) == ({"lost writes": 1} if count else {})


@pytest.mark.parametrize(("said", "count"), [("ok", 1), ("refused", 0)])
def test_old_answer_is_wrong_unless_the_edge_says_that_its_copy_is_old(said: Outcome, count: int) -> None:
    ready = [op("ready", None, second, outcome=said) for second in (38, 42)]

    assert judged(*WRITES, op("visit", "v2", 40), *ready).wrong["stale answers"] == count


@pytest.mark.parametrize(("is_lossless", "count"), [(True, 1), (False, 0)])
def test_old_answer_is_right_where_the_write_after_it_is_of_a_lost_tail(is_lossless: bool, count: int) -> None:
    failover = Fault("a failover", frozenset({"db1"}), 21, 38, takes_primary=True)
    seen = [op("ready", None, 38), op("visit", "v2", 40), op("ready", None, 42)]

    verdict = judged(*WRITES, *seen, faults=(failover,), is_lossless=is_lossless)

    assert verdict.wrong["stale answers"] == count


@pytest.mark.parametrize(("hits", "count"), [("edge1", 0), ("edge2", 1)])
def test_failed_request_is_excused_by_a_fault_of_its_own_edge(hits: str, count: int) -> None:
    fault = Fault("kill -9", frozenset({hits}), 29, 31)

    assert judged(*WRITES, op("visit", None, 30, outcome="failed"), faults=(fault,)).wrong["failed requests"] == count


@pytest.mark.parametrize(("is_lossless", "found"), [(True, {"writes refused without reason": 1}), (False, {})])
def test_refused_write_is_a_finding_unless_a_failover_took_what_it_is_about(
    is_lossless: bool, found: dict[str, int]
) -> None:
    failover = Fault("a failover", frozenset({"db1"}), 3, 6, takes_primary=True)
    refused = op("write", "v1", 8, outcome="refused")

    assert wrong(judged(refused, faults=(failover,), is_lossless=is_lossless)) == found
