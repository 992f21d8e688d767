"""The main job from one command, with every process and part real, as a user on a machine without a network runs it."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from bench.lab.ports import free_ports
from bench.lab.powerdns import find_powerdns
from tests.acceptance.demo_process import Demo, environment, wait_until_gone

_WALK_SECONDS = 180  # on a busy machine
STARTED = "lab, database, API, monitor, edge"
STEPS = (
    "token",
    "eligibility",
    "POST /power",
    "first HTTPS response",
    "forwarded headers and path",
    "root path",
    "status",
    "PUT /power, seen at the edge",
    "DELETE /power, gone at the edge",
    "domain check",
    "connect modal",
    "plan",
    "change of the zone, by RFC 2136",
    "records live, domain powered",
    "first HTTPS response of the flow",
    "undo",
    "consent, by Domain Connect",
    "records live, domain secured",
    "HTTPS by Secure",
    *(["change by PowerDNS' API, and undo"] if find_powerdns() else []),
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One that stays, for the tests that look at it; with a temporary directory of its own to leave clean."""
    env = environment(tmp_path_factory.mktemp("unused"))
    del env["FRONTAGE_STATE_DIR"]
    env["FRONTAGE_EDGE_ACCESS_LOG"] = "-"
    env["TMPDIR"] = env["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("tmp"))
    with Demo.started(env=env, cwd=tmp_path_factory.mktemp("elsewhere")) as running:
        running.env = env
        running.read_until("Ctrl-C ends everything")
        yield running


@pytest.mark.timeout(500)
def test_killed_in_the_middle_it_leaves_no_process_and_every_step_passes_twice_on_that_state(tmp_path: Path) -> None:
    env = environment(tmp_path / "state")
    with Demo.started("--check", env=env, cwd=tmp_path) as demo:
        demo.read_until(STARTED)
        family = demo.family()
        assert len(family) > 5
        demo.end(signal.SIGKILL)
    wait_until_gone(family)
    with Demo.started("--check", env=env, cwd=tmp_path, ends_after_seconds=_WALK_SECONDS) as demo:
        assert demo.finish() == 0, demo.output
    reported = [line for line in demo.output.splitlines() if line.startswith("✓")]
    assert [line[2:38].strip() for line in reported] == [STARTED, *STEPS]
    assert "All steps passed" in demo.output
    with Demo.started("--check", "--json", env=env, cwd=tmp_path, ends_after_seconds=_WALK_SECONDS) as demo:
        assert demo.finish() == 0, demo.output
    assert [each["step"] for each in json.loads(demo.output)["steps"]] == [STARTED, *STEPS]


def test_curl_line_works_as_printed(demo: Demo) -> None:
    argv = shlex.split(demo.line_after("Try it"))
    page = subprocess.run([*argv, "--silent", "--show-error"], capture_output=True, text=True, timeout=120, check=False)
    assert page.returncode == 0, page.stderr
    assert "Version A of the application" in page.stdout
    assert "shop.customer.localhost" in page.stdout
    written = orjson.loads(demo.read_until('"user_agent":"curl/'))
    assert (written["domain"], written["path"], written["status"]) == ("shop.customer.localhost", "/", 200)


def test_the_root_that_was_trusted_can_be_removed_again(demo: Demo) -> None:
    shown = demo.output.partition("The CA's root, to trust on this machine")[2].partition("The API")[0]
    assert "rm /usr/local/share/ca-certificates/frontage.crt && update-ca-certificates --fresh" in shown


def test_printed_token_command_opens_the_api(demo: Demo) -> None:
    printed = shlex.split(demo.line_after("A token for it"))
    assert (Path(printed[1]).name, printed[2]) == ("frontage", "token")
    name, _, state_dir = printed[0].partition("=")
    argv = [sys.executable, "-m", "api.cli", *printed[2:]]
    token = subprocess.run(
        argv, env=demo.env | {name: state_dir}, capture_output=True, text=True, timeout=120, check=True
    )
    page, _, application_id = demo.line_after("The API, with a form for each call").split()
    curl = [
        "curl",
        "--silent",
        "--fail",
        "-H",
        f"applicationId: {application_id}",
        "-H",
        f"Authorization: Bearer {token.stdout.strip()}",
    ]
    listed = subprocess.run(
        [*curl, f"{page.removesuffix('/docs/api')}/power"], capture_output=True, text=True, timeout=120, check=True
    )
    assert '"shop.customer.localhost"' in listed.stdout


def test_a_second_one_on_its_state_directory_is_refused_and_touches_nothing(demo: Demo, tmp_path: Path) -> None:
    state_dir = Path(shlex.split(demo.line_after("A token for it"))[0].partition("=")[2])
    said = (state_dir / "demo.log").read_text()
    assert said
    with Demo.started("--check", env=environment(state_dir), cwd=tmp_path) as second:
        assert second.finish() == 1
    (line,) = second.output.splitlines()
    assert f"already runs on {state_dir} (process {demo.process.pid})" in line
    assert (state_dir / "demo.log").read_text().startswith(said)


def test_locust_drives_the_demo_through_edge_and_api(demo: Demo) -> None:
    state_dir, locust, *options = shlex.split(demo.line_after("Load"))
    name, _, value = state_dir.partition("=")
    assert Path(locust).name == "locust"
    argv = [sys.executable, "-m", "locust", *options, "--headless", "-u", "10", "-r", "10", "-t", "15s"]
    run = subprocess.run(argv, env=demo.env | {name: value}, capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "edge: page" in run.stdout + run.stderr
    assert "api: GET /power, list" in run.stdout + run.stderr


def test_sigterm_ends_it_and_leaves_neither_process_nor_file(tmp_path: Path) -> None:
    env = environment(tmp_path / "unused")
    del env["FRONTAGE_STATE_DIR"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env["TMPDIR"] = env["XDG_RUNTIME_DIR"] = str(temporary)
    with Demo.started("--json", env=env, cwd=tmp_path) as demo:
        while not demo.output.endswith("\n}\n"):
            demo.read_until("}")
        family = demo.family()
        assert len(family) > 5
        assert demo.end(signal.SIGTERM) == 0, demo.output
    shown = json.loads(demo.output)
    assert (shown["stateDir"].startswith(str(temporary)), shown["isKept"]) == (True, False)
    wait_until_gone(family)
    assert list(temporary.iterdir()) == []


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    env = environment(tmp_path / "state", EDGE_HTTPS=f"127.0.0.1:{port}")
    with socket.create_server(("127.0.0.1", port)), Demo.started("--check", env=env, cwd=tmp_path) as demo:
        assert demo.finish() == 1
    (line,) = demo.output.splitlines()
    assert "FRONTAGE_EDGE_HTTPS" in line
    assert str(port) in line


def test_a_bad_setting_is_one_clear_line(tmp_path: Path) -> None:
    env = environment(tmp_path / "state", EDGE_WORKERS="many")
    with Demo.started("--check", env=env, cwd=tmp_path) as demo:
        assert demo.finish() == 1
    (line,) = demo.output.splitlines()
    assert "FRONTAGE_EDGE_WORKERS" in line
