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
import re
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import answers, heads, output
from bench.callgrind import CountedProcess, counted
from bench.cases import KB
from bench.instruction_parts import PARTS
from bench.peers.certificates import make_certificate
from common.errors import OperatorError
from common.secrets import load_keyring, new_master_key
from common.settings import PREFIX

HOST: Final = "shop.customer.localhost"
SECURE_ORIGIN_HOST: Final = "tls.customer.localhost"
_PATIENCE_SECONDS: Final = 120.0
_READ_BYTES: Final = 1 << 18
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)", re.IGNORECASE)
_HANDSHAKE_SHARE: Final = 8  # a whole one costs as much as thirty requests


@dataclass(frozen=True, slots=True)
class InstructionCase:
    """`requests` are sent in turn, on one connection; or each on a new one (`reconnects`), which may offer the last
    one's TLS session (`resumes`)."""

    key: str
    title: str
    requests: Sequence[bytes]
    answers: Sequence[bytes] = field(default_factory=answers.same)
    secure: bool = False
    reconnects: bool = False
    resumes: bool = False
    logs: bool = False
    is_origin_secure: bool = False

    def count(self, requests: int) -> int:
        return max(1, requests // _HANDSHAKE_SHARE) if self.reconnects else requests


def cases() -> list[InstructionCase]:
    page, closing = heads.page(HOST, heads.read_page()), heads.closing(HOST, KB)
    varied = heads.varied(HOST, KB)
    return [
        InstructionCase("repeated", "the same request again", heads.same(HOST, KB)),
        InstructionCase("varied", "every header block different", varied),
        InstructionCase("answers", "every header block and every response different", varied, answers.varied()),
        InstructionCase("log", "every header block different, the access log written", varied, logs=True),
        InstructionCase(
            "origin-tls",
            "every header block different, the origin over TLS",
            heads.varied(SECURE_ORIGIN_HOST, KB),
            is_origin_secure=True,
        ),
        InstructionCase(
            "post", "every header block different, a POST of 200 bytes", heads.posts(HOST, KB), answers.keeping()
        ),
        InstructionCase("host-last", "the same request again, Host last", heads.host_last(heads.same(HOST, KB))),
        InstructionCase(
            "host-last-varied", "every block different, Host last", heads.host_last(heads.varied(HOST, KB))
        ),
        InstructionCase("page", "a recorded browser's page load", page),
        InstructionCase("tls", "the same request again, over TLS", heads.same(HOST, KB), secure=True),
        InstructionCase("tls-varied", "every block different, over TLS", heads.varied(HOST, KB), secure=True),
        InstructionCase("tls-new", "a new connection, whole handshake", closing, secure=True, reconnects=True),
        InstructionCase(
            "tls-resumed", "a new connection, resumed session", closing, secure=True, reconnects=True, resumes=True
        ),
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
    with tempfile.TemporaryDirectory(prefix="frontage-instructions-") as name, listening() as listener:
        directory = Path(name)
        write_records(directory, listener.getsockname()[1])
        for logs in (False, True):
            of_worker = [case for case in chosen if case.logs is logs]
            if not of_worker:
                continue
            with _worker(directory, logs=logs) as worker:
                for case in of_worker:
                    port = worker.https_port if case.secure else worker.http_port
                    counts[case.key] = measure_case(worker.process, port, listener, case, case.count(requests))
    return counts


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """The origin's socket."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(_PATIENCE_SECONDS)
        yield listener


def measure_case(
    process: CountedProcess, port: int, listener: socket.socket, case: InstructionCase, requests: int
) -> dict[str, float]:
    """Instructions a request, by part. `process` is the proxy at `port`, and `listener` its origin."""
    with Conversation(port, listener, case) as conversation:
        conversation.run(len(case.requests) if case.key == "page" else requests // 4)
        process.start_counting()
        conversation.run(requests)
        spent = process.stop_counting()
    return {part: spent[part] / requests for part in PARTS}


class Conversation:
    """One client connection at a time to the proxy at `port`, and the one connection to the origin that serves it; both
    ends are this process'."""

    def __init__(self, port: int, listener: socket.socket, case: InstructionCase) -> None:
        self._port = port
        self._case = case
        self._turn = 0
        self._listener = listener
        self._origin: socket.socket | None = None
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._client = self._connect(None)

    def _connect(self, session: ssl.SSLSession | None) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=_PATIENCE_SECONDS)
        if not self._case.secure:
            return plain
        client = self._context.wrap_socket(plain, server_hostname=HOST, session=session)
        if session is not None and not client.session_reused:
            raise OperatorError("the worker did not resume a session")
        return client

    def _reconnect(self) -> None:
        before = self._client
        session = before.session if self._case.resumes and isinstance(before, ssl.SSLSocket) else None
        before.close()
        self._client = self._connect(session)

    def _accept(self) -> socket.socket:
        origin, _ = self._listener.accept()
        origin.settimeout(_PATIENCE_SECONDS)
        if not self._case.is_origin_secure:
            return origin
        key, chain = make_certificate(SECURE_ORIGIN_HOST)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(key + chain)
            file.flush()
            context.load_cert_chain(file.name)
        return context.wrap_socket(origin, server_side=True)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._origin is not None:
            self._origin.close()  # the next case begins with a new one

    def run(self, requests: int) -> None:
        for _ in range(requests):
            if self._case.reconnects and self._turn:
                self._reconnect()
            self._client.sendall(self._case.requests[self._turn % len(self._case.requests)])
            self._turn += 1
            if self._origin is None:
                self._origin = self._accept()
            _read_message(self._origin)
            self._origin.sendall(self._case.answers[self._turn % len(self._case.answers)])
            head = _read_message(self._client)
            if not head.startswith(b"HTTP/1.1 200 "):
                raise OperatorError(f"not an answer to count: {head[:40]!r}")


def _read_message(peer: socket.socket) -> bytes:
    """Read a message to the end of its body. Returns its head."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _read(peer)
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0:
        missing -= len(_read(peer))
    return head


def _read(peer: socket.socket) -> bytes:
    data = peer.recv(_READ_BYTES)
    if not data:
        raise OperatorError("the worker closed a connection that it was to keep")
    return data


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
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | {
        PREFIX + "STATE_DIR": str(directory),
        PREFIX + "EDGE_HTTPS_REDIRECT": "off",
        PREFIX + "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        PREFIX + "EDGE_ORIGIN_TIMEOUT_SECONDS": "120",
        "PYTHONHASHSEED": "0",
    }


def write_records(directory: Path, origin_port: int) -> None:
    (directory / "master.key").write_text(new_master_key().line)
    (directory / "master.key").chmod(0o600)
    key, chain = make_certificate(HOST)
    envelope = load_keyring(directory / "master.key").seal(key.encode(), f"certificate/{HOST}/private-key")
    records = {
        "application/bench": {"application_url": f"http://127.0.0.1:{origin_port}"},
        "application/secure": {"application_url": f"https://127.0.0.1:{origin_port}", "origin_verify": False},
        f"route/power/{HOST}": {"application_id": "bench"},
        f"route/power/{SECURE_ORIGIN_HOST}": {"application_id": "secure"},
        f"certificate/{HOST}": {"chain": chain, "private_key": base64.b64encode(envelope).decode()},
    }
    (directory / "records.json").write_text(json.dumps(records))


if __name__ == "__main__":
    main()
