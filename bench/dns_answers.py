"""``python -m bench.dns_answers``: how many questions a second one core answers at EDGE_DNS, over UDP.

The server runs in a process of its own, without a limit for a client. A third of the questions each is for a label of a
running order, an absent one and a foreign name; then malformed ones are sent alone. The figure is answers by the CPU
time of the server's process, so that other work on the machine changes it little. The goal is 5,000 a second. Written
to ``bench/output/dns_answers.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import subprocess
import sys
from itertools import cycle, islice

import dns.message

from bench import output
from bench.process_tree import cpu_seconds
from common.processes import loop_factory
from edge.dns.responder import DnsCounters, Responder
from edge.dns.server import serving
from edge.dns.zone import Zone

_GOAL = 5000
_AT_ONCE = 32
_ANSWER_SECONDS = 10.0
_ZONE = "acme.frontage.example"
_LABEL = "abcdefghijklmnopqrstuvwxyz"
_NAMES = (f"{_LABEL}.{_ZONE}", f"absent.{_ZONE}", "shop.customer.example")
_VALUES = {_LABEL: ["x" * 43]}


async def serve(datagrams: int, listener: int) -> None:
    """Answer at these descriptors until this process is ended."""
    zone = Zone(_ZONE, "power.frontage.example", lambda label: _VALUES.get(label, ()))
    async with serving([datagrams, listener], Responder(zone, DnsCounters(), per_second=1e9)):
        await asyncio.get_running_loop().create_future()


def answered_a_second(server: subprocess.Popen[bytes], client: socket.socket, messages: list[bytes], count: int) -> int:
    """Send so many messages, a few at once, and return the answers by a second of the server's CPU time."""
    sent = cycle(messages)
    client.send(next(sent))
    client.recv(4096)  # it has started
    before = cpu_seconds(server.pid)
    for _ in range(count // _AT_ONCE):
        for message in islice(sent, _AT_ONCE):
            client.send(message)
        for _ in range(_AT_ONCE):
            client.recv(4096)
    return round(count / (cpu_seconds(server.pid) - before))


def measure(count: int) -> dict[str, int]:
    """Start a server, ask it, and end it."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        datagrams.bind(("127.0.0.1", 0))
        for each in (datagrams, listener):
            each.setblocking(False)
        descriptors = (datagrams.fileno(), listener.fileno())
        argv = [sys.executable, "-m", "bench.dns_answers", "--serve", *map(str, descriptors)]
        client.settimeout(_ANSWER_SECONDS)
        client.connect(datagrams.getsockname())
        server = subprocess.Popen(argv, pass_fds=descriptors)
        try:
            questions = [dns.message.make_query(name, "TXT", use_edns=0).to_wire() for name in _NAMES]
            answered = answered_a_second(server, client, questions, count)
            return {"answered": answered, "malformed": answered_a_second(server, client, [questions[0][:-1]], count)}
        finally:
            server.kill()
            server.wait()


def main() -> None:
    """Run the bench, or its server."""
    parser = argparse.ArgumentParser(prog="python -m bench.dns_answers", description=__doc__)
    parser.add_argument("--questions", type=int, default=64_000)
    parser.add_argument("--serve", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve(*given.serve))
        return
    figures = measure(given.questions)
    for kind, figure in figures.items():
        print(f"{kind:10} {figure:>8,} a second of one core (goal: {_GOAL:,})")
    output.write("dns_answers", dict(figures))


if __name__ == "__main__":
    main()
