"""What the demo prints for people to copy."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bench.demo import command as demo


def test_what_is_to_be_installed_is_printed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_command", lambda _: None)
    stage: Any = SimpleNamespace(
        settings=SimpleNamespace(
            edge_https=SimpleNamespace(port=8443), edge_dns=None, state_dir=Path("/tmp/[bold]"), base_url="http://api"
        ),
        lab=SimpleNamespace(origin="http://origin", zone="http://zone", sink="http://sink", partner="http://p"),
        edge_https_host="127.0.0.1",
        ca_file=Path("/tmp/root.pem"),
        application_id="a",
        sign_in_link="http://link",
    )
    said = io.StringIO()
    demo._present(Console(file=said, soft_wrap=True), stage, "shop.example", 1.0, is_kept=False, root=None)
    assert "\nLoad, after `pip install -e '.[bench]'` in the clone\n" in said.getvalue()
    assert "FRONTAGE_STATE_DIR='/tmp/[bold]' frontage token a\n" in said.getvalue()
