"""The test command's own rules: what failed, or broke off, fails the command, and nothing is tried again."""

from __future__ import annotations

import re

import pytest

from tests import __main__ as command


@pytest.mark.parametrize(
    ("status", "result"), [(0, 0), (1, 1), (3, 1)], ids=["passed", "a test failed", "the run broke off"]
)
def test_every_test_has_one_try(monkeypatch: pytest.MonkeyPatch, status: int, result: int) -> None:
    monkeypatch.chdir(command.ROOT)  # where it goes by itself
    monkeypatch.setattr(command, "provide_debian_packages", lambda *, may_install: None)
    statuses = [status]
    monkeypatch.setattr(command, "run", lambda title, argv: statuses.pop())
    assert command.main(["tests/unit"]) == result
    assert not statuses


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Two packages are missing; apt-get cannot install `npm`, and therefore nothing together with it."""
    ran: list[list[str]] = []
    installed: set[str] = set()

    def apt_get(command_line: list[str]) -> bool:
        packages = [each for each in command_line if each in ("curl", "npm")]
        ran.append(packages)
        succeeds = "npm" not in packages
        installed.update(packages if succeeds else ())
        return succeeds

    monkeypatch.setattr(command, "apt_get", apt_get)
    monkeypatch.setattr(command, "missing_packages", lambda: [p for p in ("curl", "npm") if p not in installed])
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
    return ran


def test_packages_are_installed_only_where_it_is_asked_for(
    apt: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    command.provide_debian_packages(may_install=False)
    assert apt == []
    assert "skipped (--install-packages installs them): curl npm" in capsys.readouterr().out


def test_a_package_that_cannot_be_installed_does_not_keep_the_others_away(
    apt: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    command.provide_debian_packages(may_install=True)
    assert apt == [[], ["curl", "npm"], ["curl"], ["npm"]]
    assert "skipped: npm" in capsys.readouterr().out


def test_the_flag_does_not_reach_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(command.ROOT)
    allowed: list[bool] = []
    monkeypatch.setattr(command, "provide_debian_packages", lambda *, may_install: allowed.append(may_install))
    ran: list[list[str]] = []

    def run(title: str, argv: list[str]) -> int:
        ran.append(argv)
        return 0

    monkeypatch.setattr(command, "run", run)
    assert command.main(["--install-packages", "tests/unit"]) == 0
    assert allowed == [True]
    assert "--install-packages" not in ran[0]
    assert len(ran) == 1


def test_pre_commit_runs_the_same_checks() -> None:
    text = (command.ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert dict(re.findall(r" name: (.+)\n +entry: (.+)\n", text)) == command.CHECKS
