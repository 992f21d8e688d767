"""The command line, and the client that is measured."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import bench.neighbours
from bench import output
from bench.lab.ports import free_ports
from bench.neighbours.offences import BY_KEY, OFFENDER_HOST, Offence
from bench.peers import HOST, LOAD_CORE, Peer, RunningProxy, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.nginx_proxy import Nginx, nginx
from bench.pinned import module, program, server
from bench.process_tree import set_priority
from common.errors import FrontageError, OperatorError

GOAL_MILLISECONDS: Final = 20.0
GOAL_FACTOR: Final = 3.0

_PEERS: Final[tuple[Peer, ...]] = (Frontage(), Nginx())
_ORIGIN: Final = 'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }}'
_PAUSE_SECONDS: Final = 0.002
_PATIENCE_SECONDS: Final = 10.0
_WARM_UP_SECONDS: Final = 0.5
_LOADED, _MEASURED = 1, 2  # priorities of real time
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % HOST.encode()


@dataclass(slots=True)
class OffenceWaits:
    """The waits beside one offence in milliseconds, the lowest of the rounds.

    `offences`: how often the offender began its offence again, the highest of the rounds.
    """

    median: float = float("inf")
    worst: float = float("inf")
    offences: int = 0

    def add(self, seconds: Sequence[float], offences: int) -> None:
        """Take in the measurements of a round, in seconds."""
        self.median = min(self.median, statistics.median(seconds) * 1e3)
        self.worst = min(self.worst, max(seconds) * 1e3)
        self.offences = max(self.offences, offences)


def main() -> None:
    """Run the bench and print its table."""
    arguments = _parse()
    offences = [BY_KEY[key] for key in arguments.offences]
    try:
        measured = asyncio.run(_measure(offences, arguments.seconds, arguments.rounds, arguments.seed))
    except FrontageError as error:
        sys.exit(f"bench.neighbours: {error}")
    titles = {"alone": "alone", **{offence.key: offence.title for offence in offences}}
    print(f"{'beside':46}" + "".join(f"{peer.name:>26}" for peer in _PEERS))
    print(f"{'milliseconds':46}" + f"{'median':>9} {'worst':>7} {'times':>8}" * len(_PEERS))
    for key, title in titles.items():
        waits = [measured[peer.name, key] for peer in _PEERS]
        print(f"{title:46}" + "".join(f"{each.median:9.2f} {each.worst:7.1f} {each.offences:8}" for each in waits))
    for broken in _broken_goals(measured, offences):
        print(f"goal missed: {broken}")
    figures = {f"{peer} {key}": asdict(waits) for (peer, key), waits in measured.items()}
    print(f"written to {output.write('neighbours', {'seed': arguments.seed, 'milliseconds': figures})}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.neighbours",
        description=bench.neighbours.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--offences", nargs="+", choices=BY_KEY, default=list(BY_KEY), help="these only (all)")
    parser.add_argument("--seconds", type=float, default=2.0, help="beside each offence, a round (2)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the lowest figure counts (5)")
    parser.add_argument("--seed", type=int, default=1, help="of sizes and contents; each round takes the next (1)")
    return parser.parse_args()


async def _measure(
    offences: Sequence[Offence], seconds: float, rounds: int, seed: int
) -> dict[tuple[str, str], OffenceWaits]:
    """Return the waits by peer and offence.

    Raises: `OperatorError`.
    """
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    needed = {"taskset": "util-linux"}
    for peer in _PEERS:
        needed |= peer.needs
    if packages := missing(needed):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    measured: dict[tuple[str, str], OffenceWaits] = defaultdict(OffenceWaits)
    with tempfile.TemporaryDirectory(prefix="frontage-neighbours-") as name:
        directory = Path(name)
        os.chmod(directory, 0o755)  # nginx' worker is another user when we are root
        write_certificates(directory, (HOST, OFFENDER_HOST))
        port, offending = free_ports(2)
        log = directory / "origin.log"
        argv = module("bench.neighbours.offending_origin", str(offending), "--seed", str(seed))
        async with AsyncExitStack() as stack:
            quick = await stack.enter_async_context(nginx(_ORIGIN.format(port=port), core=LOAD_CORE, port=port))
            set_priority(quick, _MEASURED)
            await stack.enter_async_context(server(argv, core=LOAD_CORE, log=log, port=offending))
            sites = Sites({HOST: port, OFFENDER_HOST: offending}, directory)
            started = [(peer.name, await stack.enter_async_context(peer.serve(sites))) for peer in _PEERS]
            os.sched_setaffinity(0, {LOAD_CORE})
            for number in range(rounds):
                for offence in (None, *offences):
                    for peer_name, serving in started:
                        waits = measured[peer_name, offence.key if offence else "alone"]
                        waits.add(
                            *await asyncio.to_thread(_beside, serving, offence, seconds, seed + number, directory)
                        )
    return measured


def _beside(
    serving: RunningProxy, offence: Offence | None, seconds: float, seed: int, directory: Path
) -> tuple[list[float], int]:
    """Return the seconds that each request took, and how often the offender began again.

    Raises: `OperatorError`.
    """
    set_priority(serving.pid, _LOADED)
    try:
        return _measure_beside(serving, offence, seconds, seed, directory)
    finally:
        set_priority(serving.pid, 0)


def _measure_beside(
    serving: RunningProxy, offence: Offence | None, seconds: float, seed: int, directory: Path
) -> tuple[list[float], int]:
    if offence is None:
        return _ask(serving.http_port, seconds), 0
    is_secure = offence.is_handshake or offence.record_bytes or offence.is_http2
    port = serving.https_port if is_secure else serving.http_port
    options = ["--seconds", str(seconds + 2 * _WARM_UP_SECONDS), "--seed", str(seed)]
    log = directory / f"{offence.key}-{serving.pid}-{seed}.log"
    argv = module("bench.neighbours.offender", offence.key, str(port), *options)
    with program(argv, core=LOAD_CORE, log=log) as process:
        time.sleep(2 * _WARM_UP_SECONDS)  # its start
        waited = _ask(serving.http_port, seconds)
        process.wait(_PATIENCE_SECONDS)
    return waited, int(log.read_text().split()[-1])


def _ask(port: int, seconds: float) -> list[float]:
    """Send requests one after the other, and return the seconds of each.

    Raises: `OperatorError` when a request is not answered.
    """
    waited = []
    set_priority(0, _MEASURED)
    ends_at = time.perf_counter() + seconds
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS) as sock:
            while (begun_at := time.perf_counter()) < ends_at:
                sock.sendall(_REQUEST)
                answer = sock.recv(4096)
                while not answer.endswith(b"\r\n\r\nok"):
                    if not (more := sock.recv(4096)):
                        raise OperatorError(f"a request was not answered: {answer[:40]!r}")
                    answer += more
                waited.append(time.perf_counter() - begun_at)
                time.sleep(_PAUSE_SECONDS)
    except OSError as error:
        raise OperatorError(f"a request was not answered: {error!r}") from error
    return waited[5:] or waited  # the first ones open connections


def _broken_goals(measured: dict[tuple[str, str], OffenceWaits], offences: Sequence[Offence]) -> list[str]:
    """Describe the goals that were missed."""
    ours = _PEERS[0].name
    alone = measured[ours, "alone"]
    broken = []
    for offence in offences:
        waits = measured[ours, offence.key]
        if waits.worst > GOAL_MILLISECONDS:
            broken.append(f"{offence.title}: {waits.worst:.1f} ms, not {GOAL_MILLISECONDS:g}")
        if offence.is_handshake and waits.median > GOAL_FACTOR * alone.median:
            broken.append(f"{offence.title}: {waits.median / alone.median:.1f} x the median alone, not {GOAL_FACTOR:g}")
    return broken


if __name__ == "__main__":
    main()
