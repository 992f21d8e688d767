"""``python -m bench.request_steps``: what the steps of a forwarded request cost, in instructions, beside nginx's whole.

A step is taken again and again by itself, under callgrind (`bench.counted_steps`). What no step has is the event loop's
and the sockets': the whole of `bench.instructions` less that of the steps. nginx is counted with the same requests and
the configuration that it has in `bench.compare`. The table is also written as JSON (``request_steps.json`` in
``bench/output``). Needs Debian's `valgrind` and `nginx-light`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import output
from bench.callgrind import counted
from bench.counted_nginx import measure_nginx
from bench.counted_steps import EMPTY, REQUESTS
from bench.instruction_cases import cases
from bench.instructions import measure, worker_environ, write_records
from bench.lab.ports import free_ports
from common.errors import OperatorError

_COUNTED: Final = 1025
_CHOSEN: Final = [case for case in cases() if case.key in ("repeated", "varied")]


def main() -> None:
    """Run the bench and print its table."""
    argparse.ArgumentParser(
        prog="python -m bench.request_steps", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        steps, nginx = _count_steps(), measure_nginx(_CHOSEN, _COUNTED)
        ours = {key: sum(parts.values()) for key, parts in measure(_CHOSEN, _COUNTED).items()}
    except (OperatorError, OSError) as error:
        sys.exit(f"bench.request_steps: {error}")
    rows = {f"step: {name}": count for name, count in steps.items()}
    rows |= {f"whole: {case.title}": ours[case.key] for case in _CHOSEN}
    rows |= {f"nginx: {case.title}": nginx[case.key] for case in _CHOSEN}
    for name, count in rows.items():
        print(f"{name:60} {count:9,.0f}")
    print(f"written to {output.write('request_steps', {'instructions_per_request': rows})}")


def _count_steps() -> dict[str, float]:
    """Return the instructions of a request, by step.

    Raises: `OperatorError`.
    """
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="frontage-steps-") as name:
        directory = Path(name)
        write_records(directory, free_ports(1)[0])
        argv = [sys.executable, "-m", "bench.counted_steps"]
        with counted(directory, argv, worker_environ(directory)) as process:
            while words := process.read_words():
                process.start_counting()
                process.send_line()
                process.read_words()
                found[" ".join(words)] = sum(process.stop_counting().values()) / REQUESTS
                process.send_line()
    empty = found.pop(EMPTY)
    return {step: count - empty for step, count in found.items()}


if __name__ == "__main__":
    main()
