"""The main job with certificates from an ACME CA: Pebble, which validates through the demo's own edge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.lab.pebble import is_installed, running_pebble
from bench.lab.powerdns import find_powerdns
from common.host_ports import parse_host_port
from tests.acceptance.demo_process import Demo, environment

pytestmark = pytest.mark.skipif(not is_installed(), reason="needs Debian's pebble")


async def test_demo_walks_every_step_with_certificates_of_an_acme_ca(tmp_path: Path) -> None:
    env = environment(tmp_path / "state", ISSUER="acme")
    edge_http = parse_host_port(env["FRONTAGE_EDGE_HTTP"])
    async with running_pebble(tmp_path, http_port=edge_http.port) as pebble:
        env |= {"FRONTAGE_ACME_DIRECTORY": pebble.directory, "FRONTAGE_ACME_CA_FILE": str(pebble.ca_file)}
        trusted = tmp_path / "state" / "ca" / "root.pem"  # where the walk looks for whom to trust
        trusted.parent.mkdir(parents=True)
        trusted.write_text(await pebble.root())
        with Demo.started("--check", env=env, cwd=tmp_path) as demo:
            assert await asyncio.to_thread(demo.finish) == 0, demo.output
        assert "All steps passed" in demo.output
        # one for the name that the partner powers, one for each name that a flow connects
        flows = 3 if find_powerdns() else 2
        assert pebble.count("Issued certificate serial") == 1 + flows
