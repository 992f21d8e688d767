"""What the doctor makes of an edge's own words, and of the machine's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.cli.doctor import authorities, machine, names, nodes
from api.cli.doctor.examination import examine
from api.cli.doctor.findings import FindingState
from common.secrets import load_keyring
from common.settings import load


@pytest.mark.parametrize(
    ("health", "state", "word"),
    [
        (None, FindingState.NOTE, "none answers"),
        ({"replica": {"age_seconds": 0.2, "held_copy": None}}, FindingState.OK, "0.2 seconds"),
        ({"replica": {"age_seconds": 300.0, "held_copy": None}}, FindingState.BROKEN, "300 seconds old"),
        ({"replica": {"age_seconds": None, "held_copy": None}}, FindingState.BROKEN, "unknown age"),
        ({"replica": {"age_seconds": 0.2, "held_copy": {"removes": 9}}}, FindingState.BROKEN, "/replica/accept"),
        ({"message": "not an edge"}, FindingState.BROKEN, "unknown age"),
    ],
)
def test_an_edge_is_judged_by_what_it_serves_from(
    health: dict[str, Any] | None, state: FindingState, word: str
) -> None:
    finding, *_ = nodes.judge_edge(load({}), health)
    assert finding.state is state
    assert word in finding.text


def test_a_master_key_that_others_can_read_is_broken(tmp_path: Path) -> None:
    settings = load({"FRONTAGE_STATE_DIR": str(tmp_path)})
    assert machine.check_master_key(settings).state is FindingState.NOTE
    load_keyring(settings.key_file, create=True)
    assert machine.check_master_key(settings).state is FindingState.OK
    settings.key_file.chmod(0o644)
    assert "chmod 600" in machine.check_master_key(settings).text


def test_a_bad_setting_is_the_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTAGE_NOSUCH", "1")
    [finding] = examine()
    assert finding.state is FindingState.BROKEN
    assert "FRONTAGE_NOSUCH" in finding.text


async def test_targets_that_only_this_machine_knows_are_noted() -> None:
    [finding] = await names.check_targets(load({}))
    assert (finding.state, "FRONTAGE_POWER_TARGET and FRONTAGE_SSL_TARGET" in finding.text) == (FindingState.NOTE, True)


async def test_one_target_that_only_this_machine_knows_is_named_alone() -> None:
    set_one = load({"FRONTAGE_SSL_TARGET": "secure.invalid", "FRONTAGE_DNS_SERVERS": "127.0.0.1:1"})
    noted, _ = await names.check_targets(set_one)
    words = "FRONTAGE_POWER_TARGET still names this machine only: set it to a name whose DNS leads to your edges"
    assert words in noted.text


def test_certificates_of_our_own_ca_are_noted_and_an_acme_directory_is_needed() -> None:
    [finding] = authorities.check_authorities(load({}))
    assert (finding.state, "public CA" in finding.text) == (FindingState.NOTE, True)
    finding, *_ = authorities.check_authorities(load({"FRONTAGE_ISSUER": "acme"}))
    assert (finding.state, "FRONTAGE_ACME_DIRECTORY" in finding.text) == (FindingState.BROKEN, True)
    finding, port = authorities.check_authorities(
        load({"FRONTAGE_ISSUER": "acme", "FRONTAGE_ACME_DIRECTORY": "https://127.0.0.1:1/d"})
    )
    assert (finding.state, "cannot be asked" in finding.text) == (FindingState.BROKEN, True)
    assert (port.state, "port 80" in port.text) == (FindingState.NOTE, True)
