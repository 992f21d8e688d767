"""The test command's own rule: it passes when every step does, and only then."""

from __future__ import annotations

import pytest

from tests import __main__ as command


@pytest.mark.parametrize(("status", "result"), [(0, 0), (1, 1), (3, 1)], ids=["passed", "failed", "broke off"])
def test_the_command_fails_when_its_tests_do(monkeypatch: pytest.MonkeyPatch, status: int, result: int) -> None:
    titles = []

    def run(title: str, _: list[str]) -> int:
        titles.append(title)
        return status

    monkeypatch.chdir(command.ROOT)  # where it goes by itself
    monkeypatch.setattr(command, "install_debian_packages", lambda: None)
    monkeypatch.setattr(command, "run", run)
    assert command.main(["tests/unit"]) == result
    assert titles == ["tests"]  # once, whatever came of it
