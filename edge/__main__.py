"""The edge role, ``python -m edge``: the upgrade parent of its sockets and generations.

What serves is composed in `edge.supervisor_main` (a generation's supervisor) and `edge.process.worker_service` (its
workers).
"""

from __future__ import annotations

from functools import partial

from common.processes import run_role
from edge.process.upgrade_parent import run_upgrade_parent

GENERATION = "edge.supervisor_main"


def main() -> None:
    """Run the upgrade parent."""
    run_role("edge", partial(run_upgrade_parent, module=GENERATION))


if __name__ == "__main__":
    main()
