"""A few hundred generated cases; ``python -m tests.fuzz_http2`` generates as many as wanted."""

from __future__ import annotations

import pytest

from tests.unit.edge.http2 import head_oracles, oracles


@pytest.mark.parametrize(
    ("judge", "cases"),
    [
        (head_oracles.judge_blocks, 400),
        (head_oracles.judge_alike_blocks, 150),
        (head_oracles.judge_response_head, 100),
        (oracles.judge_alike_requests, 150),
        (oracles.judge_conversation, 60),
        (oracles.judge_damaged, 300),
    ],
)
def test_generated_input_is_read_as_others_read_it(judge, cases: int) -> None:  # type: ignore[no-untyped-def]
    for seed in range(cases):
        judge(seed)
