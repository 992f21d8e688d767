from __future__ import annotations

import pytest

from edge.process.generation_messages import (
    Begin,
    Command,
    Leave,
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
    decode_command,
    decode_report,
    encode,
)
from edge.process.worker_messages import ListenerPair


@pytest.mark.parametrize(
    "command",
    [
        Begin([3, 5], [4, 6], 7),
        Begin([3], [4], 5, [6, 7]),
        Prepare(),
        TakeOver(),
        StandBack(),
        Leave(),
        Stop(),
        Renew(),
        UpgradeFailed("now", "x"),
    ],
)
def test_orders_arrive_as_they_were_said(command: Command) -> None:
    assert decode_command(encode(command)) == command


@pytest.mark.parametrize("report", [Prepared(), Serving(), StoodBack()])
def test_reports_arrive_as_they_were_said(report: Report) -> None:
    assert decode_report(encode(report)) == report


def test_gates_are_pairs_of_descriptors() -> None:
    assert Begin([3, 5], [4, 6], 7).pairs == (ListenerPair(3, 4), ListenerPair(5, 6))


def test_what_only_another_version_says_is_passed_over() -> None:
    assert decode_command(b'{"say":"Dance"}\n') is None
    assert decode_report(b'{"say":"Danced"}\n') is None
    assert decode_command(b'{"say":"Begin","http":[3],"https":[4],"admin":5,"quic":[6]}\n') == Begin([3], [4], 5)
