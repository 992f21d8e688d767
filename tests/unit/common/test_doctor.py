"""What the doctor makes of an edge's own words, and of the machine's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.cli import doctor
from common.cli.doctor import State
from common.secrets import load_keyring
from common.settings import load


@pytest.mark.parametrize(
    ("health", "state", "word"),
    [
        (None, State.NOTE, "none answers"),
        ({"replica": {"age_seconds": 0.2, "held_copy": None}}, State.OK, "0.2 seconds"),
        ({"replica": {"age_seconds": 300.0, "held_copy": None}}, State.BROKEN, "300 seconds old"),
        ({"replica": {"age_seconds": None, "held_copy": None}}, State.BROKEN, "unknown age"),
        ({"replica": {"age_seconds": 0.2, "held_copy": {"removes": 9}}}, State.BROKEN, "/replica/accept"),
        ({"message": "not an edge"}, State.BROKEN, "unknown age"),
    ],
)
def test_an_edge_is_judged_by_what_it_serves_from(
    monkeypatch: pytest.MonkeyPatch, health: dict[str, Any] | None, state: State, word: str
) -> None:
    monkeypatch.setattr(doctor, "_said", lambda address, path: health)
    finding = doctor._replica(load({}))
    assert finding.state is state
    assert word in finding.says


def test_a_master_key_that_others_can_read_is_broken(tmp_path: Path) -> None:
    settings = load({"FRONTAGE_STATE_DIR": str(tmp_path)})
    assert doctor._master_key(settings).state is State.NOTE
    load_keyring(settings.key_file, create=True)
    assert doctor._master_key(settings).state is State.OK
    settings.key_file.chmod(0o644)
    assert "chmod 600" in doctor._master_key(settings).says


def test_a_bad_setting_is_the_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTAGE_NOSUCH", "1")
    [finding] = doctor.examine()
    assert finding.state is State.BROKEN
    assert "FRONTAGE_NOSUCH" in finding.says


def test_targets_that_only_this_machine_knows_are_noted() -> None:
    assert doctor._targets(load({})).state is State.NOTE
    settings = load({"FRONTAGE_POWER_TARGET": "power.example.com", "FRONTAGE_SSL_TARGET": "ssl.example.com"})
    assert doctor._targets(settings).state is State.OK


def test_certificates_of_our_own_ca_are_noted_and_an_acme_directory_is_needed() -> None:
    [finding] = doctor._issuers(load({}))
    assert (finding.state, "public CA" in finding.says) == (State.NOTE, True)
    finding, *_ = doctor._issuers(load({"FRONTAGE_ISSUER": "acme"}))
    assert (finding.state, "FRONTAGE_ACME_DIRECTORY" in finding.says) == (State.BROKEN, True)
    finding, port = doctor._issuers(
        load({"FRONTAGE_ISSUER": "acme", "FRONTAGE_ACME_DIRECTORY": "https://127.0.0.1:1/d"})
    )
    assert (finding.state, "cannot be asked" in finding.says) == (State.BROKEN, True)
    assert (port.state, "port 80" in port.says) == (State.NOTE, True)
