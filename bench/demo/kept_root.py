"""One CA root for every demo of a user, so that a browser that trusts it trusts the next demo too.

It lies in ``$XDG_STATE_HOME/frontage-demo``, or in ``~/.local/state/frontage-demo``, for its user alone, beside the
master key that seals its key. A demo gets copies of both into its state directory; nothing else of a demo is kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from common.clock import SystemClock
from common.errors import OperatorError
from common.secrets import load_keyring
from monitor.certificates.internal import open_internal, root_path

_KEY = "master.key"


def kept_directory(environ: Mapping[str, str]) -> Path:
    """Return where the root is kept."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "frontage-demo"


def place_kept_root(environ: Mapping[str, str], state_dir: Path) -> Path | None:
    """Copy the kept root into an empty state directory, and return its certificate; the first demo makes it.

    Return None where it cannot be kept: the demo then has a root of its own.
    """
    kept = kept_directory(environ)
    try:
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        open_internal(kept, load_keyring(kept / _KEY, create=True), SystemClock())
        shutil.copy2(kept / _KEY, state_dir / _KEY)
        shutil.copytree(root_path(kept).parent, root_path(state_dir).parent)
    except (OSError, OperatorError):
        return None
    return root_path(kept)
