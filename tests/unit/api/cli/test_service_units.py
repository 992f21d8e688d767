"""The units that run the roles: systemd finds nothing wrong with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli.service import units
from api.cli.service.workloads import ROLES, Role
from common.settings import load


def test_each_role_has_a_unit_that_can_be_enabled_and_the_edge_its_sockets() -> None:
    files = units.units("/opt/frontage/bin/frontage", workers=2)
    services = {path: text for path, text in files.items() if path.endswith(".service")}
    assert [Path(path).name for path in services] == [f"frontage-{role}.service" for role in ROLES]
    for text in services.values():
        assert "WantedBy=multi-user.target" in text
        assert "ProtectSystem=strict" in text
        assert "CapabilityBoundingSet=\n" in text
        assert "SystemCallFilter=@system-service\n" in text
        assert "StartLimitIntervalSec=0" in text.partition("[Service]")[0]
        assert "$" not in text.replace("$MAINPID", "")
    assert files[f"{units.SYSTEMD}/frontage-https.socket"].count("ListenStream=443") == 2
    api = files[f"{units.SYSTEMD}/frontage-api.socket"]
    assert "ListenStream=127.0.0.1:8000" in api
    assert "Service=frontage-api.service" in api
    assert "Sockets=frontage-api.socket" in files[f"{units.SYSTEMD}/frontage-api.service"]
    assert not any("socket" in path for path in units.units("/bin/frontage", (Role.MONITOR,)))
    assert f"{units.SYSTEMD}/frontage-dns.socket" not in files
    answering = units.units("/bin/frontage", (Role.EDGE,), dns_listen="192.0.2.1:53")
    dns = answering[f"{units.SYSTEMD}/frontage-dns.socket"]
    assert ("ListenDatagram=192.0.2.1:53" in dns, "ListenStream=192.0.2.1:53" in dns) == (True, True)
    assert "https.socket frontage-dns.socket\n" in answering[f"{units.SYSTEMD}/frontage-edge.service"]


def test_a_shell_reads_the_environment_file_as_systemd_does(tmp_path: Path) -> None:
    """`frontage migrate` is run with it by hand, and a database's address may have an ampersand."""
    file = tmp_path / "frontage.env"
    file.write_text(units.environment())
    script = f'set -a && . {file} && printf "%s" "$FRONTAGE_DATABASE_URL"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    [expected] = [
        line.partition("=")[2].strip("'") for line in units.environment().splitlines() if "DATABASE_URL" in line
    ]
    assert done.stdout == expected
    assert "&" in expected


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    program = tmp_path / "frontage"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    written = []
    for path, text in units.units(str(program), dns_listen="192.0.2.1:53").items():
        if path.startswith(units.SYSTEMD):
            file = tmp_path / Path(path).name
            file.write_text(text)
            written.append(str(file))
    done = subprocess.run(
        ["systemd-analyze", "verify", *written], capture_output=True, text=True, timeout=60, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "frontage" in line]
    assert ours == []


def test_the_containers_image_has_settings_that_exist_and_no_part_of_the_clone() -> None:
    build, _, image = units.container().rpartition("FROM ")
    assert "COPY . /source" in build
    assert re.findall(r"^COPY (.*)$", image, re.MULTILINE) == ["--from=build /opt/frontage /opt/frontage"]
    variables = dict(re.findall(r"(FRONTAGE_\w+)=([^\s']+)", image))
    assert {"FRONTAGE_STATE_DIR", "FRONTAGE_EDGE_HTTP", "FRONTAGE_API_LISTEN"} <= variables.keys()
    load(variables)


def test_install_prints_the_next_commands_by_the_path_of_the_program(tmp_path: Path) -> None:
    """Root's shell seldom has the environment's programs on its path."""
    (tmp_path / "frontage").touch(0o755)  # for an environment that has the dependencies alone
    done = subprocess.run(
        [sys.executable, "-m", "api.cli", "service", "install", "monitor", "--root", str(tmp_path)],
        env={**os.environ, "PATH": f"{os.environ['PATH']}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    unit = (tmp_path / units.SYSTEMD.lstrip("/") / "frontage-monitor.service").read_text()
    [program] = re.findall(r"^ExecStart=(\S+) monitor$", unit, re.MULTILINE)
    assert program.startswith("/")
    assert f" {program} migrate\n" in done.stderr
    assert "systemctl enable --now frontage-monitor\n" in done.stderr
