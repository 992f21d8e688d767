"""``python -m bench.instructions``: instructions an edge worker executes for one request, counted by valgrind.

Unlike CPU time, the count hardly depends on the machine or on what else runs there. One worker (`bench.counted_worker`)
runs under callgrind. This process is its only client and its only origin: it sends one request at a time on one
connection and answers as the case states; each case has a worker of its own. What the kernel does is not counted.
With ``--parts`` it prints what the instructions are spent on, too (`bench.instruction_parts`), and with ``--nginx``
what nginx executes for the same requests (`bench.counted_nginx`).
Needs Debian's `valgrind`. The table is also written as JSON (``instructions.json`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import output
from bench.callgrind import CountedProcess, counted
from bench.conversation import listening, measure_case
from bench.counted_nginx import measure_nginx
from bench.instruction_cases import HOST, SECURE_ORIGIN_HOST, InstructionCase, cases
from bench.instruction_parts import PARTS
from bench.peers.certificates import make_certificate
from common.errors import OperatorError
from common.secrets import load_keyring, new_master_key
from common.settings import PREFIX


def main() -> None:
    """Run the bench and print the instructions of each case."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1025, help="counted in each case (1025: 25 page loads)")
    parser.add_argument("--cases", help="only these, comma-separated")
    parser.add_argument("--parts", action="store_true", help="print what they are spent on")
    parser.add_argument("--nginx", action="store_true", help="print what nginx executes beside it")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if not arguments.cases or case.key in arguments.cases.split(",")]
    try:
        parts = measure(chosen, arguments.requests)
        of_nginx = measure_nginx(chosen, arguments.requests) if arguments.nginx else {}
    except (OperatorError, OSError) as error:
        sys.exit(f"bench.instructions: {error}")
    counts = {key: sum(of_case.values()) for key, of_case in parts.items()}
    for case in chosen:
        beside = f" {of_nginx[case.key]:9,.0f} {counts[case.key] / of_nginx[case.key]:5.2f}×" if of_nginx else ""
        print(f"{case.key:18} {counts[case.key]:9,.0f}{beside}   {case.title}")
        for part in PARTS if arguments.parts else ():
            print(f"{'':18} {parts[case.key][part]:9,.0f}     {part}")
    figures = {"instructions_per_request": counts} | ({"of_nginx": of_nginx} if of_nginx else {})
    print(f"written to {output.write('instructions', figures)}")


def measure(chosen: Sequence[InstructionCase], requests: int) -> dict[str, dict[str, float]]:
    """Return the instructions of a request, by case and by part.

    Raises: `OperatorError`.
    """
    counts = {}
    with tempfile.TemporaryDirectory(prefix="frontage-instructions-") as name, listening() as listener:
        directory = Path(name)
        write_records(directory, listener.getsockname()[1])
        for case in chosen:  # a worker each: the end of one case's origin would teach the next something
            with _worker(directory, logs=case.logs) as worker:
                port = worker.https_port if case.secure else worker.http_port
                counts[case.key] = measure_case(worker.process, port, listener, case, case.count(requests))
    return counts


@dataclass(frozen=True, slots=True)
class _Worker:
    process: CountedProcess
    http_port: int
    https_port: int


@contextlib.contextmanager
def _worker(directory: Path, *, logs: bool) -> Iterator[_Worker]:
    environ = worker_environ(directory) | ({PREFIX + "EDGE_ACCESS_LOG": str(directory / "access.log")} if logs else {})
    with counted(directory, [sys.executable, "-m", "bench.counted_worker"], environ) as process:
        http_port, https_port = map(int, process.read_words())
        yield _Worker(process, http_port, https_port)


def worker_environ(directory: Path) -> dict[str, str]:
    """Return the environment of a counted worker, whose state directory is `directory`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | {
        PREFIX + "STATE_DIR": str(directory),
        PREFIX + "EDGE_HTTPS_REDIRECT": "off",
        PREFIX + "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        PREFIX + "EDGE_ORIGIN_TIMEOUT_SECONDS": "120",
        "PYTHONHASHSEED": "0",
    }


def write_records(directory: Path, origin_port: int) -> None:
    """Write the records and the master key of a counted worker: one domain for each kind of origin."""
    (directory / "master.key").write_text(new_master_key().line)
    (directory / "master.key").chmod(0o600)
    keyring = load_keyring(directory / "master.key")
    records: dict[str, dict[str, object]] = {
        "application/bench": {"application_url": f"http://127.0.0.1:{origin_port}"},
        "application/secure": {"application_url": f"https://127.0.0.1:{origin_port}", "origin_verify": False},
        f"route/power/{HOST}": {"application_id": "bench"},
        f"route/power/{SECURE_ORIGIN_HOST}": {"application_id": "secure"},
    }
    for host in (HOST, SECURE_ORIGIN_HOST):
        key, chain = make_certificate(host)
        envelope = keyring.seal(key.encode(), f"certificate/{host}/private-key")
        records[f"certificate/{host}"] = {"chain": chain, "private_key": base64.b64encode(envelope).decode()}
    (directory / "records.json").write_text(json.dumps(records))


if __name__ == "__main__":
    main()
