"""The handbook's walk through Monitor, block by block on a running demo: from adding a domain to a verified webhook."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from tests.acceptance.demo_process import ROOT, Demo, environment
from tests.acceptance.terminal import Terminal
from tests.waiting import wait_until

PAGE = Path(ROOT) / "api/handbook/monitor.md"
_SECONDS = 100


def walk(terminal: Terminal, step: str) -> str:
    """Type one block of the page; what it prints."""
    block = re.search(rf"<!-- monitor walk: {step} -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block, step
    return terminal.type(block[1])


def until_delivered(sink: str, kind: str) -> dict[str, Any]:
    def delivered() -> dict[str, Any] | None:
        with urllib.request.urlopen(sink, timeout=60) as response:
            events = [json.loads(delivery["body"]) for delivery in json.load(response)]
        return next((event for event in events if event["type"] == kind), None)

    event = wait_until(delivered, kind, seconds=_SECONDS)
    assert event is not None
    return event


def test_the_walk_through_monitor_works_as_printed(tmp_path: Path) -> None:
    env = environment(tmp_path / "state", CHECK_INTERVAL_SECONDS="1")
    with Demo.started(env=env, cwd=tmp_path) as demo:
        demo.read_until("Ctrl-C ends everything")
        api, _, application_id = demo.line_after("The API, with a form for each call").partition("  applicationId: ")
        api = api.removesuffix("/docs/api")
        zone, sink = (
            demo.line_after(title).removeprefix("curl ")
            for title in ("The customers' DNS zone, to change with PUT and DELETE", "The webhooks it has received")
        )
        variables = {"ID": application_id, "API": api, "ZONE": zone, "SINK": sink}
        with Terminal.opened(env, variables) as terminal:
            added = walk(terminal, "add")
            assert '{"message":"Domain successfully added"}' in added
            assert '"user_id":"user-7"' in added
            assert '"evidence"' in added

            walk(terminal, "lose")
            missing = until_delivered(sink, "domain.record_missing")
            assert missing["user_id"] == "user-7"
            assert [record["type"] for record in missing["data"]["records_non_propagated"]] == ["TXT"]
            assert [record["type"] for record in missing["data"]["records_propagated"]] == ["CNAME"]

            walk(terminal, "restore")
            restored = until_delivered(sink, "domain.record_restored")
            assert restored["data"]["records_non_propagated"] == []
            assert restored["sequence"] == missing["sequence"] + 1

            assert "'type': 'domain.record_restored'" in walk(terminal, "verify")
            assert json.loads(terminal.type("api $API/monitor/status"))["status"] == "healthy"
