"""The test command's own rules: what failed, or broke off, fails the command, and nothing is tried again."""

from __future__ import annotations

import pytest

from tests import __main__ as command


@pytest.mark.parametrize(
    ("status", "result"), [(0, 0), (1, 1), (3, 1)], ids=["passed", "a test failed", "the run broke off"]
)
def test_every_test_has_one_try(monkeypatch: pytest.MonkeyPatch, status: int, result: int) -> None:
    monkeypatch.chdir(command.ROOT)  # where it goes by itself
    monkeypatch.setattr(command, "install_debian_packages", lambda: None)
    statuses = [status]
    monkeypatch.setattr(command, "run", lambda title, argv: statuses.pop())
    assert command.main(["tests/unit"]) == result
    assert not statuses
