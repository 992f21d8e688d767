"""The test command's own rules: what is tried again, and what is not."""

from __future__ import annotations

import pytest

from tests import __main__ as command


@pytest.mark.parametrize(
    ("statuses", "result"),
    [([0], 0), ([1, 0], 0), ([1, 1], 1), ([3], 1)],
    ids=["passed", "passed again", "failed twice", "broke off"],
)
def test_only_a_run_that_came_to_its_end_has_its_failures_tried_again(
    monkeypatch: pytest.MonkeyPatch, statuses: list[int], result: int
) -> None:
    monkeypatch.chdir(command.ROOT)  # where it goes by itself
    monkeypatch.setattr(command, "install_debian_packages", lambda: None)
    monkeypatch.setattr(command, "run", lambda title, argv: statuses.pop(0))
    assert command.main(["tests/unit"]) == result
    assert not statuses
