"""The doctor's look at ACME directories."""

from __future__ import annotations

import asyncio
from pathlib import Path

from api.cli.doctor.authorities import check_authorities
from api.cli.doctor.findings import Finding, FindingState
from bench.lab.faulty_ca import FaultyCa
from bench.lab.pebble import Pebble
from common.settings import load


async def look(pebble: Pebble, directory: str, **more: str) -> Finding:
    environ = {
        "FRONTAGE_ISSUER": "acme",
        "FRONTAGE_ACME_DIRECTORY": directory,
        "FRONTAGE_ACME_CA_FILE": str(pebble.ca_file),
        **more,
    }
    return (await asyncio.to_thread(list, check_authorities(load(environ))))[0]


async def test_directories_are_asked(pebble: Pebble, faulty: FaultyCa, tmp_path: Path) -> None:
    assert (await look(pebble, pebble.directory)).state is FindingState.OK
    untrusted = await look(pebble, pebble.directory, FRONTAGE_ACME_CA_FILE="")
    assert (untrusted.state, "is not trusted" in untrusted.text, "FRONTAGE_ACME_CA_FILE" in untrusted.text) == (
        FindingState.BROKEN,
        True,
        True,
    )
    missing = await look(pebble, pebble.directory, FRONTAGE_ACME_CA_FILE=str(tmp_path / "none"))
    assert (missing.state, "FRONTAGE_ACME_CA_FILE" in missing.text) == (FindingState.BROKEN, True)
    faulty.meta = {"externalAccountRequired": True}
    external = await look(pebble, faulty.directory)
    assert (external.state, "FRONTAGE_ACME_EAB" in external.text) == (FindingState.BROKEN, True)
    authority = faulty.directory.split("/")[2]
    bound = await look(pebble, faulty.directory, FRONTAGE_ACME_EAB=f"{authority}=kid:{'x' * 32}")
    assert bound.state is FindingState.OK
    faulty.fail("directory", body=b"[]")
    assert "no ACME directory" in (await look(pebble, faulty.directory)).text
