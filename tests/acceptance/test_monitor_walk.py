"""README's walk through Monitor, block by block on a running demo: from adding a domain to a verified webhook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.demo_process import ROOT, Demo, environment

README = Path(ROOT) / "README.md"
_SECONDS = 100
_DONE = "-- the block is done --"
_COMMANDS = f"""
frontage() {{ '{sys.executable}' -m common.cli "$@"; }}
python3() {{ '{sys.executable}' "$@"; }}
"""


class Terminal:
    """One shell for all of the README's blocks, as the reader has."""

    def __init__(self, shell: subprocess.Popen[str]) -> None:
        self._shell = shell

    @classmethod
    @contextmanager
    def opened(cls, env: dict[str, str], variables: dict[str, str]) -> Iterator[Terminal]:
        with subprocess.Popen(
            ["bash", "--norc"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as shell:
            watchdog = threading.Timer(_SECONDS, shell.kill)
            watchdog.start()
            try:
                terminal = cls(shell)
                terminal.type(_COMMANDS + "".join(f"{name}='{value}'\n" for name, value in variables.items()))
                yield terminal
            finally:
                watchdog.cancel()
                shell.kill()

    def type(self, block: str) -> str:
        """What it prints."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{block}\nprintf '\\n%s\\n' '{_DONE}'\n")
        self._shell.stdin.flush()
        printed = ""
        for line in self._shell.stdout:
            if line.strip() == _DONE:
                return printed
            printed += line
        raise AssertionError(printed)

    def walk(self, step: str) -> str:
        block = re.search(rf"<!-- monitor walk: {step} -->\n```sh\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
        assert block, step
        return self.type(block[1])


def until_delivered(sink: str, kind: str) -> dict[str, Any]:
    deadline = time.monotonic() + _SECONDS
    while True:
        with urllib.request.urlopen(sink, timeout=10) as response:
            events = [json.loads(delivery["body"]) for delivery in json.load(response)]
        for event in events:
            if event["type"] == kind:
                return dict(event)
        assert time.monotonic() < deadline, events
        time.sleep(0.1)


def test_the_walk_through_monitor_works_as_printed(tmp_path: Path) -> None:
    env = environment(tmp_path / "state", CHECK_INTERVAL_SECONDS="1")
    with Demo.started(env=env, cwd=tmp_path) as demo:
        demo.read_until("Ctrl-C ends everything")
        api, _, application_id = demo.line_after("The API").partition("  applicationId: ")
        zone, sink = (
            demo.line_after(title).removeprefix("curl ")
            for title in ("The customers' DNS zone, to change with PUT and DELETE", "The webhooks it has received")
        )
        variables = {"ID": application_id, "API": api, "ZONE": zone, "SINK": sink}
        with Terminal.opened(env, variables) as terminal:
            added = terminal.walk("add")
            assert '{"message":"Domain successfully added"}' in added
            assert '"user_id":"user-7"' in added
            assert '"evidence"' in added

            terminal.walk("lose")
            missing = until_delivered(sink, "domain.record_missing")
            assert missing["user_id"] == "user-7"
            assert [record["type"] for record in missing["data"]["records_non_propagated"]] == ["TXT"]
            assert [record["type"] for record in missing["data"]["records_propagated"]] == ["CNAME"]

            terminal.walk("restore")
            restored = until_delivered(sink, "domain.record_restored")
            assert restored["data"]["records_non_propagated"] == []
            assert restored["sequence"] == missing["sequence"] + 1

            assert "'type': 'domain.record_restored'" in terminal.walk("verify")
            assert json.loads(terminal.type("api $API/monitor/status"))["status"] == "healthy"
