"""One report of failing origins out of those of all workers."""

from __future__ import annotations

from common.origin_faults import FailingOrigin, OriginFault, OriginIdentity
from edge.process.supervisor import merge_failing
from edge.upstream.breaker import MOST_REPORTED


def failing(port: int, fault: OriginFault = "refused") -> FailingOrigin:
    return FailingOrigin(OriginIdentity("http", "a.example", port, "a.example", True), fault)


def test_each_origin_is_reported_once_and_in_a_fixed_order() -> None:
    assert merge_failing([[failing(3), failing(1)], [failing(1, "timeout"), failing(2)]]) == merge_failing(
        [[failing(1, "timeout"), failing(3)], [failing(2), failing(1, "timeout")]]
    )
    assert [each.origin.port for each in merge_failing([[failing(3), failing(1)], [failing(1), failing(2)]])] == [
        1,
        2,
        3,
    ]


def test_no_worker_crowds_out_the_others() -> None:
    busy = [failing(port) for port in range(1000, 1000 + MOST_REPORTED)]
    merged = merge_failing([busy, [failing(1), failing(2)]])
    assert len(merged) == MOST_REPORTED
    assert {1, 2, 1000} <= {each.origin.port for each in merged}


def test_nothing_fails_without_workers() -> None:
    assert merge_failing([]) == ()
