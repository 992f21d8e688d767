"""README's walk to a domain of one's own, typed block by block into three terminals."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.acceptance.demo_process import ROOT, environment
from tests.acceptance.terminal import Terminal

PRINTED = re.findall(r"```sh\n(.*?)```", (Path(ROOT) / "README.md").read_text("utf-8"), re.DOTALL)
LAB, UP, ENROL = (block for block in PRINTED if "FRONTAGE" in block or "bench.lab" in block)


def fill(block: str, *addresses: str) -> str:
    """As the reader does: each ``…`` after ``127.0.0.1:`` becomes a port that was printed."""
    for address in addresses:
        block = re.sub(r"127\.0\.0\.1:…", address.removeprefix("http://"), block, count=1)
    assert "…" not in block
    return "\n".join(line for line in block.splitlines() if "bin/activate" not in line)


def test_the_walk_ends_with_the_page_on_the_domain(tmp_path: Path) -> None:
    env = environment(tmp_path / "state")
    ports = {name: value.rpartition(":")[2] for name, value in env.items() if name.startswith("FRONTAGE_")}
    with Terminal.opened(env, {}) as lab, Terminal.opened(env, {}) as up, Terminal.opened(env, {}) as user:
        printed = json.loads(lab.start(fill(LAB), "{"))
        state = f"FRONTAGE_STATE_DIR={env['FRONTAGE_STATE_DIR']}"
        up.start(fill(UP, printed["dns"]).replace("FRONTAGE_STATE_DIR=/tmp/frontage-walk", state), "ready")
        enrol = fill(ENROL, printed["origin"]).replace("FRONTAGE_STATE_DIR=/tmp/frontage-walk", state)
        enrol = enrol.replace(":8000", f":{ports['FRONTAGE_API_LISTEN']}")
        enrol = enrol.replace(":8443", f":{ports['FRONTAGE_EDGE_HTTPS']}")
        shown, again = user.type(enrol), user.type(enrol)
    assert '"eligible":true' in shown
    assert "Domain successfully powered." in shown
    assert "customer" in shown.split("Domain successfully powered.")[1].lower()
    assert '"next_step"' in shown
    assert "frontage app id apps.acme.example" in again, "the refusal to create it twice says how to find it"
    assert "Traceback" not in again
    assert "Unauthorized" not in again
    assert again.count("<h1>shop.customer.example</h1>") == 1
    assert '"next_step"' in again
