"""The configurations that the handbook shows for an anycast address are such as BIRD, nftables and a shell read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bench.anycast import page_blocks

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.parametrize(("language", "command"), [("bird", ("bird", "-p", "-c")), ("sh", ("sh", "-n"))])
def test_each_block_is_understood(tmp_path: Path, language: str, command: tuple[str, ...]) -> None:
    if shutil.which(command[0], path=PATH) is None:
        pytest.skip(f"needs {command[0]}")
    blocks = page_blocks(language)
    assert len(blocks) == 2
    for block in blocks:
        file = tmp_path / "block"
        file.write_text(block)
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, env={"PATH": PATH}, check=False)
        assert (done.returncode, done.stderr) == (0, "")
