"""``python -m bench.php_client``: milliseconds of PHP's ``file_get_contents`` over https, a new connection each time.

PHP leaves Nagle's algorithm on and resumes no session, so its time shows what a handshake keeps a client waiting for.
Ours beside nginx and HAProxy before the same origin, in turn; the table has each peer's median and best of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench import output
from bench.lab.ports import free_ports
from bench.peers import HOST, LOAD_CORE, Peer, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx, nginx
from bench.pinned import last_line
from common.errors import FrontageError, OperatorError

_PEERS: tuple[Peer, ...] = (Frontage(), Nginx(), HAProxy())
_CONNECTIONS = 50
_SECONDS = 60.0
_ORIGIN = 'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }}'
_SCRIPT = """
    $tls = ["peer_name" => $argv[2], "verify_peer" => false, "verify_peer_name" => false];
    $options = ["ssl" => $tls, "http" => ["header" => "Host: $argv[2]"]];
    $times = [];
    for ($i = 0; $i < $argv[3]; $i++) {
        $started = hrtime(true);
        $body = file_get_contents("https://127.0.0.1:$argv[1]/", false, stream_context_create($options));
        $times[] = (hrtime(true) - $started) / 1e6;
        if ($body !== "ok") { fwrite(STDERR, "not the origin's answer"); exit(1); }
    }
    echo json_encode($times);
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.php_client", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help=f"of {_CONNECTIONS} connections to each peer (5)")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    try:
        times = asyncio.run(_measure(arguments.rounds))
    except FrontageError as error:
        sys.exit(f"bench.php_client: {error}")
    figures = {name: {"median": statistics.median(each), "best": min(each)} for name, each in times.items()}
    print(f"{'ms':10} {'median':>8} {'best':>8}")
    for name, figure in figures.items():
        print(f"{name:10} {figure['median']:8.2f} {figure['best']:8.2f}")
    print(f"written to {output.write('php_client', {'milliseconds': figures})}")


async def _measure(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each connection, by peer. Raises: `OperatorError`."""
    needs = {"php": "php-cli", "taskset": "util-linux"}
    for peer in _PEERS:
        needs |= peer.needs
    if packages := missing(needs):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    times: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="frontage-php-") as name:
        os.chmod(name, 0o755)  # nginx' worker is another user when we are root
        write_certificates(Path(name), (HOST,))
        (port,) = free_ports(1)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(nginx(_ORIGIN.format(port=port), core=LOAD_CORE, port=port))
            sites = Sites({HOST: port}, Path(name))
            started = [(peer.name, await stack.enter_async_context(peer.serve(sites))) for peer in _PEERS]
            for _ in range(rounds):
                for peer_name, serving in started:
                    times[peer_name] += await _connect_often(serving.https_port)
    return times


async def _connect_often(port: int) -> Sequence[float]:
    argv = ["php", "-r", _SCRIPT, "--", str(port), HOST, str(_CONNECTIONS)]
    times: list[float] = json.loads(await last_line(argv, core=LOAD_CORE, seconds=_SECONDS))
    return times


if __name__ == "__main__":
    main()
