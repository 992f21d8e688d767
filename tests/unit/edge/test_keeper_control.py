from __future__ import annotations

import pytest

from edge.keeper_control import (
    Begin,
    Leave,
    Order,
    Prepare,
    Prepared,
    Renew,
    Report,
    Serving,
    StandBack,
    StoodBack,
    Stop,
    TakeOver,
    UpgradeFailed,
    decode_order,
    decode_report,
    encode,
)
from edge.worker_control import Gate


@pytest.mark.parametrize(
    "order",
    [Begin([3, 5], [4, 6], 7), Prepare(), TakeOver(), StandBack(), Leave(), Stop(), Renew(), UpgradeFailed("now", "x")],
)
def test_orders_arrive_as_they_were_said(order: Order) -> None:
    assert decode_order(encode(order)) == order


@pytest.mark.parametrize("report", [Prepared(), Serving(), StoodBack()])
def test_reports_arrive_as_they_were_said(report: Report) -> None:
    assert decode_report(encode(report)) == report


def test_gates_are_pairs_of_descriptors() -> None:
    assert Begin([3, 5], [4, 6], 7).gates == (Gate(3, 4), Gate(5, 6))


def test_what_only_another_version_says_is_passed_over() -> None:
    assert decode_order(b'{"say":"Dance"}\n') is None
    assert decode_report(b'{"say":"Danced"}\n') is None
    assert decode_order(b'{"say":"Begin","http":[3],"https":[4],"admin":5,"quic":[6]}\n') == Begin([3], [4], 5)
