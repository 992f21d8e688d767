"""`frontage edge`, `api` and `monitor`: become the role. The command line imports none of them."""

from __future__ import annotations

import os


def edge() -> None:
    """Run the proxy: it serves domains, from its own copy when the database is away."""
    _become("edge")


def api() -> None:
    """Run the management API."""
    _become("api")


def monitor() -> None:
    """Run the background work: certificates, checks, deliveries. Run any number of them."""
    _become("monitor")


def _become(role: str) -> None:
    from common.processes import role_argv

    argv = role_argv(role)
    os.execv(argv[0], argv)  # noqa: S606 - the same process, so that its parent's signals reach the role
