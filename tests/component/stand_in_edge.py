"""An edge with a stand-in data path: real upgrade parent, supervisor and workers; the service answers its pid.

Run as ``python -m tests.component.stand_in_edge``. The replica is a file with a number in the state directory. Files
there make the version that starts next fail: ``bad-import``, ``bad-settings``, ``crash`` (of a worker),
``bad-active-role``; ``empty`` keeps it from being ready.
``GET /``, ``/slow`` (part of the answer first, the rest once there is a file ``released``), ``/hang`` (blocks the
loop), ``/recovered`` (an origin was reached again) and ``/echo`` (from then on whatever comes is sent back).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from common.builds import Build
from common.db.edge_nodes import SERVING, EdgeTraffic, FailedUpgrade
from common.errors import OperatorError
from common.file_locks import FileLock
from common.metrics import Family
from common.origin_faults import FailingOrigin, OriginIdentity
from common.processes import run_role
from common.settings import Settings
from common.traffic import TrafficReport
from edge.replica.certificate_keys import CertificateUse

MODULE = "tests.component.stand_in_edge"
SERVICE = f"{MODULE}:compose"


class FileReplica:
    connected = False
    age_seconds: float | None = None
    held_copy: int | None = 7
    damages = 0
    proof_age_seconds: float | None = None
    condition = SERVING

    def __init__(self, path: Path, on_applied: Callable[[int], None]) -> None:
        if path.with_name("bad-active-role").exists():
            raise RuntimeError("this version cannot take the active role")
        self._lock = FileLock.try_acquire(path.with_name("writer.lock"))
        assert self._lock is not None, "two edges write one copy"
        self._path = path
        self._on_applied = on_applied
        self.version = None if path.with_name("empty").exists() else read_version(path)

    @property
    def reader(self) -> FileReplica:
        return self

    def get_raw(self, kind: str, key: str) -> bytes | None:
        return None

    def is_cut_off(self) -> bool:
        return False

    async def run(self) -> None:
        if self._path.with_name("refusal").exists():
            raise OperatorError("the stand-in refuses")
        while True:
            await asyncio.sleep(0.01)
            if (version := read_version(self._path)) != self.version and version is not None:
                self.version = version
                self._on_applied(version)

    def report_failing(self, origins: tuple[FailingOrigin, ...]) -> None:
        pass

    def report_failed_upgrade(self, failure: FailedUpgrade | None) -> None:
        pass

    def report_traffic(self, traffic: EdgeTraffic) -> None:
        pass

    def report_certificates(self, use: CertificateUse) -> None:
        pass

    def accept_held_copy(self) -> bool:
        held, self.held_copy = self.held_copy, None
        return held is not None

    def keep_lease(self) -> None:
        pass

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()


class NoTraffic:
    """Counts nothing."""

    def add(self, report: TrafficReport) -> None:
        pass

    def __init__(self) -> None:
        self._is_finishing = asyncio.Event()

    async def run(self) -> None:
        await self._is_finishing.wait()

    def finish(self) -> None:
        self._is_finishing.set()


def read_version(path: Path) -> int | None:
    try:
        return int(path.read_text() or 0)
    except FileNotFoundError:
        return None


class Answers:
    """The service: a tiny HTTP/1.1 server that tells which process and version answered."""

    def __init__(self, settings: Settings) -> None:
        if (settings.state_dir / "crash").exists():
            raise SystemExit(3)
        self._path = settings.state_dir / "version"
        self.released = settings.state_dir / "released"
        self.version = read_version(self._path)
        self.running = 0
        self.answered = 0
        self.recovered: list[OriginIdentity] = []
        self.noted = 0
        self.is_draining = False

    def plain_protocol(self) -> asyncio.Protocol:
        return AnswerProtocol(self)

    secure_protocol = plain_protocol

    def on_replica_change(self) -> None:
        self.version = read_version(self._path)

    def drain(self) -> None:
        self.is_draining = True

    def is_idle(self) -> bool:
        return self.running == 0

    def measurements(self) -> list[Family]:
        return [
            Family.of("stand_in_answers", "Answers.", "counter", self.answered),
            Family.of("stand_in_running", "Exchanges that run.", "gauge", self.running),
            Family.of("stand_in_noted", "Origins that another worker reached again.", "counter", self.noted),
        ]

    def failing_origins(self) -> list[FailingOrigin]:
        return []

    def take_recovered_origins(self) -> list[OriginIdentity]:
        recovered, self.recovered = self.recovered, []
        return recovered

    def note_recovered_origins(self, origins: Sequence[OriginIdentity]) -> None:
        self.noted += len(origins)

    def certificates(self) -> CertificateUse:
        return CertificateUse()

    def take_traffic(self) -> TrafficReport:
        return TrafficReport()

    def close(self) -> None:
        pass


def compose(settings: Settings) -> Answers:
    return Answers(settings)


class AnswerProtocol(asyncio.Protocol):
    def __init__(self, service: Answers) -> None:
        self._service = service
        self._buffer = b""
        self._is_echo = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by class

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.running -= self._is_echo

    def data_received(self, data: bytes) -> None:
        if self._is_echo:
            self._transport.write(data)
            return
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            path = head.split()[1].decode()
            service = self._service
            service.running += 1
            body = f"{os.getpid()} {service.version}\n".encode()
            if path == "/hang":
                time.sleep(60)
            if path == "/recovered":
                service.recovered.append(OriginIdentity("http", "origin.example", 80, "origin.example", verify=True))
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body))
            if path == "/echo":
                self._is_echo = True
                self._transport.write(b"\r\n" + body)
                return
            if path == "/slow":
                self._end_when_released(body)
            else:
                self._end(body)

    def _end_when_released(self, body: bytes) -> None:
        if self._service.released.exists():
            self._end(body)
        else:
            asyncio.get_running_loop().call_later(0.01, self._end_when_released, body)

    def _end(self, body: bytes) -> None:
        service = self._service
        service.running -= 1
        service.answered += 1
        self._transport.write((b"Connection: close\r\n" if service.is_draining else b"") + b"\r\n" + body)
        if service.is_draining:
            self._transport.close()


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    from edge.process.supervisor_process import supervise

    if (settings.state_dir / "bad-import").exists():
        import nothing_of_that_name  # type: ignore[import-not-found]  # noqa: F401
    if (settings.state_dir / "bad-settings").exists():
        raise OperatorError("FRONTAGE_EDGE_HTTP has a bad value: says the stand-in")
    await supervise(
        settings,
        stop,
        service=SERVICE,
        replica=lambda on_applied: FileReplica(settings.state_dir / "version", on_applied),
        traffic=NoTraffic(),
        build=Build("1.2.0", None),
    )


def main() -> None:
    from edge.process.upgrade_parent import run_upgrade_parent

    run_role("edge", serve if len(sys.argv) > 1 else partial(run_upgrade_parent, module=MODULE))


if __name__ == "__main__":
    main()
