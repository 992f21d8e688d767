"""``python -m bench.php_client``: milliseconds of PHP's ``file_get_contents`` over https, a new connection each time.

PHP leaves Nagle's algorithm on and resumes no session, so its time shows what a handshake keeps a client waiting for.
Ours beside nginx and HAProxy before the same origin, in turn; the table has each peer's median and best of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from bench import output
from bench.peers import HOST, LOAD_CORE
from bench.peers.side_by_side import side_by_side
from bench.pinned import last_line
from common.errors import FrontageError

_CONNECTIONS = 50
_SECONDS = 60.0
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
    times: dict[str, list[float]] = defaultdict(list)
    async with side_by_side({"php": "php-cli"}) as started:
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
