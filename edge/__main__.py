"""The edge role, ``python -m edge``: the keeper of its sockets and generations. What serves is composed in
`edge.supervisor_main` (a generation's supervisor) and `edge.worker_service` (its workers).
"""

from __future__ import annotations

from functools import partial

from common.processes import run_role
from edge.keeper import keep

GENERATION = "edge.supervisor_main"


def main() -> None:
    run_role("edge", partial(keep, module=GENERATION))


if __name__ == "__main__":
    main()
