"""``python -m bench.instructions``: instructions an edge worker executes for one request, counted by valgrind.

Unlike CPU time, the count hardly depends on the machine or on what else runs there. One worker (`bench.counted_worker`)
runs under callgrind. This process is its only client and its only origin: it sends one request at a time on one
connection and answers with a fixed head and body. What the kernel does is not counted.
With ``--parts`` it prints what the instructions are spent on, too (`bench.instruction_parts`).
Needs Debian's `valgrind`. The table is also written as JSON (``instructions.json`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import heads, output
from bench.cases import KB
from bench.instruction_parts import PARTS, read_parts
from bench.peers.certificates import make_certificate
from common.errors import OperatorError
from common.secrets import load_keyring, new_master_key
from common.settings import PREFIX

HOST: Final = "shop.customer.localhost"
BODY_BYTES: Final = 1024
_PATIENCE_SECONDS: Final = 120.0
_READ_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class InstructionCase:
    """`requests` are sent in turn, on one connection."""

    key: str
    title: str
    requests: Sequence[bytes]
    secure: bool = False


def cases() -> list[InstructionCase]:
    page = heads.page(HOST, heads.read_page())
    return [
        InstructionCase("repeated", "the same request again", heads.same(HOST, KB)),
        InstructionCase("varied", "every header block different", heads.varied(HOST, KB)),
        InstructionCase("host-last", "the same request again, Host last", heads.host_last(heads.same(HOST, KB))),
        InstructionCase(
            "host-last-varied", "every block different, Host last", heads.host_last(heads.varied(HOST, KB))
        ),
        InstructionCase("page", "a recorded browser's page load", page),
        InstructionCase("tls", "the same request again, over TLS", heads.same(HOST, KB), secure=True),
        InstructionCase("tls-varied", "every block different, over TLS", heads.varied(HOST, KB), secure=True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1025, help="counted in each case (1025: 25 page loads)")
    parser.add_argument("--cases", help="only these, comma-separated")
    parser.add_argument("--parts", action="store_true", help="print what they are spent on")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if not arguments.cases or case.key in arguments.cases.split(",")]
    try:
        parts = measure(chosen, arguments.requests)
    except (OperatorError, OSError) as error:
        sys.exit(f"bench.instructions: {error}")
    counts = {key: sum(of_case.values()) for key, of_case in parts.items()}
    for case in chosen:
        print(f"{case.key:18} {counts[case.key]:9,.0f}   {case.title}")
        for part in PARTS if arguments.parts else ():
            print(f"{'':18} {parts[case.key][part]:9,.0f}     {part}")
    print(f"written to {output.write('instructions', {'instructions_per_request': counts})}")


def measure(chosen: Sequence[InstructionCase], requests: int) -> dict[str, dict[str, float]]:
    """Instructions a request, by case and by part.

    Raises: `OperatorError`.
    """
    counts = {}
    with tempfile.TemporaryDirectory(prefix="frontage-instructions-") as name, socket.socket() as listener:
        directory = Path(name)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(_PATIENCE_SECONDS)
        _write_records(directory, listener.getsockname()[1])
        with _worker(directory) as worker:
            for case in chosen:
                with _Conversation(worker, listener, case) as conversation:
                    conversation.run(len(case.requests) if case.key == "page" else requests // 4)
                    worker.start_counting()
                    conversation.run(requests)
                    spent = worker.stop_counting()
                    counts[case.key] = {part: spent[part] / requests for part in PARTS}
    return counts


class _Conversation:
    """One client connection and the one connection to the origin that serves it; both ends are this process'."""

    def __init__(self, worker: _Worker, listener: socket.socket, case: InstructionCase) -> None:
        self._requests = case.requests
        self._turn = 0
        self._listener = listener
        self._origin: socket.socket | None = None
        port = worker.https_port if case.secure else worker.http_port
        self._client: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        if case.secure:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._client = context.wrap_socket(self._client, server_hostname=HOST)

    def __enter__(self) -> _Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._origin is not None:
            self._origin.close()  # the next case begins with a new one

    def run(self, requests: int) -> None:
        for _ in range(requests):
            self._client.sendall(self._requests[self._turn % len(self._requests)])
            self._turn += 1
            if self._origin is None:
                self._origin, _ = self._listener.accept()
                self._origin.settimeout(_PATIENCE_SECONDS)
            _read_head(self._origin)
            self._origin.sendall(_ANSWER)
            head, body = _read_head(self._client)
            if not head.startswith(b"HTTP/1.1 200 "):
                raise OperatorError(f"not an answer to count: {head[:40]!r}")
            while len(body) < BODY_BYTES:
                body += self._client.recv(_READ_BYTES)


# Fixed, with a Date: origins repeat themselves within a second.
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\nConnection: keep-alive\r\n\r\n" % BODY_BYTES
) + b"x" * BODY_BYTES


def _read_head(peer: socket.socket) -> tuple[bytes, bytes]:
    """The head and what came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(_READ_BYTES)
        if not piece:
            raise OperatorError("the worker closed a connection that it was to keep")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body


class _Worker:
    """The worker's process under callgrind."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        assert process.stdout is not None
        self._process = process
        self._directory = directory
        self._dumps = 0
        line = process.stdout.readline().split()
        if len(line) != 2:
            raise OperatorError(f"the worker did not start: {(directory / 'log').read_text()[-400:]}")
        self.http_port, self.https_port = map(int, line)

    def start_counting(self) -> None:
        self._control("--zero")
        self._control("--instr=on")

    def stop_counting(self) -> Counter[str]:
        """Instructions by part."""
        self._control("--instr=off")
        self._control("--dump")
        self._dumps += 1
        with (self._directory / f"callgrind.out.{self._dumps}").open(encoding="utf-8", errors="replace") as profile:
            return read_parts(profile)

    def _control(self, command: str) -> None:
        done = subprocess.run(
            ["callgrind_control", command, str(self._process.pid)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OperatorError(f"callgrind_control {command}: {done.stderr.strip() or done.stdout.strip()}")


@contextlib.contextmanager
def _worker(directory: Path) -> Iterator[_Worker]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | {
        PREFIX + "STATE_DIR": str(directory),
        PREFIX + "EDGE_HTTPS_REDIRECT": "off",
        PREFIX + "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        PREFIX + "EDGE_ORIGIN_TIMEOUT_SECONDS": "120",
        "PYTHONHASHSEED": "0",
    }
    argv = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
    argv += [f"--callgrind-out-file={directory}/callgrind.out", sys.executable, "-m", "bench.counted_worker"]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        yield _Worker(process, directory)
    finally:
        process.kill()
        process.communicate()


def _write_records(directory: Path, origin_port: int) -> None:
    (directory / "master.key").write_text(new_master_key().line)
    (directory / "master.key").chmod(0o600)
    key, chain = make_certificate(HOST)
    envelope = load_keyring(directory / "master.key").seal(key.encode(), f"certificate/{HOST}/private-key")
    records = {
        "application/bench": {"application_url": f"http://127.0.0.1:{origin_port}"},
        f"route/power/{HOST}": {"application_id": "bench"},
        f"certificate/{HOST}": {"chain": chain, "private_key": base64.b64encode(envelope).decode()},
    }
    (directory / "records.json").write_text(json.dumps(records))


if __name__ == "__main__":
    main()
