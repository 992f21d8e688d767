"""Describes a running demo in a small file, which locust and scripts read.

It lies in the demo's state directory and, because that may be a temporary one, also under a well-known name in the
runtime directory. It holds the demo application's secret: mode 0600, and only a file of our own is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from common.atomic_files import replace_file
from common.settings import PREFIX

_NAME = "demo.json"


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """A demo that runs.

    `edge_https` is host:port to connect to, whatever `domain` resolves to; `origin` is the lab's base URL.
    """

    domain: str
    edge_https: str
    ca_file: str
    api: str
    application_id: str
    client_secret: str
    origin: str

    @contextlib.contextmanager
    def announced(self, state_dir: Path) -> Iterator[None]:
        """Keep the files that describe this demo for the block."""
        paths = [path for path in (state_dir / _NAME, _well_known()) if self._write(path)]
        try:
            yield
        finally:
            for path in paths:
                if _read(path) == self:  # a later demo may have written its own
                    path.unlink(missing_ok=True)

    def _write(self, path: Path) -> bool:
        """Write the file, and return whether it could be written."""
        try:
            replace_file(path, json.dumps(asdict(self), indent=2).encode())
        except OSError:  # another user's file: locust then needs the state directory
            return False
        return True


def find_running_demo(environ: Mapping[str, str] = os.environ) -> RunningDemo | None:
    """Return the demo in FRONTAGE_STATE_DIR when that is set, else the one that this user started last."""
    state_dir = environ.get(PREFIX + "STATE_DIR")
    return _read(Path(state_dir) / _NAME if state_dir else _well_known())


def _well_known() -> Path:
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(runtime_dir) / f"frontage-{os.geteuid()}-{_NAME}"


def _read(path: Path) -> RunningDemo | None:
    """Read the file, if it is a valid one of this user."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            return RunningDemo(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
