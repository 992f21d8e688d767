"""Where the embedded Postgres keeps its things under the state directory.

What belongs to us (locks, password, records) lies beside the server's own directory, never in it: as root we
read and write nothing in a place that the unprivileged server could have prepared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from common.errors import OperatorError


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of the embedded Postgres under a state directory."""

    state_dir: Path

    @property
    def home(self) -> Path:
        """The server's directory, 0700, owned by the user it runs as."""
        return self.state_dir / "postgres"

    @property
    def data(self) -> Path:
        """The cluster; exists only when initdb has finished (see `cluster`)."""
        return self.home / "data"

    @property
    def server_lock(self) -> Path:
        """The lock that every process of the server holds for as long as one lives."""
        return self.state_dir / "postgres.lock"

    @property
    def password_file(self) -> Path:
        """The file with the server's password."""
        return self.state_dir / "postgres.password"

    @property
    def socket_record(self) -> Path:
        """The file that names the socket directory, so that the next start finds what a kill -9 left."""
        return self.state_dir / "postgres.socket"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.state_dir / "postgres.log"


def ensure_state_dir(state_dir: Path) -> None:
    """Make the state directory, 0700; one that exists keeps its mode.

    Raises: OperatorError when it cannot be made or written.
    """
    probe = state_dir / ".writable"
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the state directory {state_dir} ({error.strerror}): "
            "make it writable, or set FRONTAGE_STATE_DIR to another"
        ) from error
