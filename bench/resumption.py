"""``python -m bench.resumption``: how many returning clients resume their TLS 1.3 session, and what that saves.

Share: fifty clients, each from a loopback address of its own, connect four times; of the last three connections, those
that resumed. With 1, 2 and 4 workers, connections spread by the kernel and by the client's address
(``EDGE_WORKER_BY_ADDRESS``). Spread: how many of a thousand addresses come to each of four listeners then.

Cost: CPU time of the server's side of a handshake in one process, resumed beside whole, median of rounds, with an
ECDSA P-256 and an RSA-2048 certificate. TLS 1.3 keeps the key exchange when it resumes (psk_dhe_ke, RFC 8446 §4.2.9)
and saves the signature alone, TLS 1.2 saves both. OpenSSL takes psk_dhe_ke of a client that offers psk_ke as well.
Parts: what the key exchange and each signature cost by themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import select
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, x25519

from bench import output
from bench.lab.ports import free_ports
from bench.peers import HOST, Sites
from bench.peers.certificates import make_certificate, write_certificates
from bench.peers.frontage_edge import Frontage
from common.errors import FrontageError
from common.settings import HostPort
from edge.process.listeners import Listeners
from edge.tls.contexts import build_context

_WORKERS: Final = (1, 2, 4)
_CLIENTS: Final = 50
_RETURNS: Final = 3
_ADDRESSES: Final = 1000
_LISTENERS: Final = 4
_PATIENCE_SECONDS: Final = 30.0
_RESPONSE: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.resumption", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300, help="handshakes of each kind (300)")
    arguments = parser.parse_args()
    try:
        shares = asyncio.run(_shares())
        for (workers, by_address), share in shares.items():
            how = "by address" if by_address else "by the kernel"
            print(f"{workers} workers, spread {how:13}  {share:4.0%} of returning connections resumed")
        counts = _spread()
        print(f"{_ADDRESSES} addresses over {_LISTENERS} listeners: {sorted(counts)}")
        costs = {
            f"{name}, {kind}": _cost(version, rsa_bits, rounds=arguments.rounds)
            for name, version in _VERSIONS.items()
            for kind, rsa_bits in _KEYS.items()
        }
        for name, (whole, resumed) in costs.items():
            print(f"{name:16} whole {whole * 1e6:6.0f} µs, resumed {resumed * 1e6:6.0f} µs: {resumed / whole:.2f} ×")
        parts = {name: _median(part, arguments.rounds) for name, part in _parts().items()}
        print(
            ", ".join(f"{name} {seconds * 1e6:.0f} µs" for name, seconds in parts.items()), f"({ssl.OPENSSL_VERSION})"
        )
    except FrontageError as error:
        sys.exit(f"bench.resumption: {error}")
    figures = {
        "shares": [{"workers": key[0], "by_address": key[1], "resumed": share} for key, share in shares.items()],
        "spread": sorted(counts),
        "server_seconds": {name: {"whole": whole, "resumed": resumed} for name, (whole, resumed) in costs.items()},
        "part_seconds": parts,
    }
    print(f"written to {output.write('resumption', figures)}")


# Shares ----------------------------------------------------------------------------------------------------


async def _shares() -> dict[tuple[int, bool], float]:
    shares = {}
    with tempfile.TemporaryDirectory(prefix="frontage-resumption-") as name:
        directory = Path(name)
        write_certificates(directory, (HOST,))
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        sites = Sites({HOST: server.sockets[0].getsockname()[1]}, directory)
        for workers in _WORKERS:
            for by_address in (False, True):
                switch = "on" if by_address else "off"
                peer = Frontage(EDGE_WORKERS=str(workers), EDGE_WORKER_BY_ADDRESS=switch)
                async with peer.serve(sites) as serving:
                    shares[workers, by_address] = await asyncio.to_thread(_share, serving.https_port)
        server.close()
    return shares


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_RESPONSE)
    writer.close()


def _share(port: int) -> float:
    resumed = 0
    for number in range(_CLIENTS):
        context, session = _client(), None
        for attempt in range(1 + _RETURNS):
            source = (f"127.0.9.{number + 1}", 0)
            raw = socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS, source_address=source)
            with context.wrap_socket(raw, server_hostname=HOST, session=session) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % HOST.encode())
                while connection.recv(65_536):
                    pass
                resumed += attempt > 0 and connection.session_reused is True
                session = connection.session
    return resumed / (_CLIENTS * _RETURNS)


def _client() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Spread ----------------------------------------------------------------------------------------------------


def _spread() -> list[int]:
    """Connections at each listener."""
    http, https, admin = (HostPort("127.0.0.1", port) for port in free_ports(3))
    opened = Listeners.opened(http, https, admin, _LISTENERS)
    with contextlib.ExitStack() as closing:
        closing.callback(opened.close)
        opened.spread_by_address()
        listeners = [closing.enter_context(socket.socket(fileno=os.dup(pair.https))) for pair in opened.pairs]
        counts: Counter[int] = Counter()
        for number in range(_ADDRESSES):
            source = (f"127.{1 + number % 7}.{number % 97}.{1 + number % 251}", 0)
            with socket.create_connection(https, source_address=source):
                (ready,) = select.select(listeners, [], [])[0]
                ready.accept()[0].close()
                counts[listeners.index(ready)] += 1
    return [counts[index] for index in range(_LISTENERS)]


# Cost ------------------------------------------------------------------------------------------------------

_VERSIONS: Final = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}
_KEYS: Final = {"ECDSA": 0, "RSA": 2048}


def _cost(version: ssl.TLSVersion, rsa_bits: int, *, rounds: int) -> tuple[float, float]:
    """Seconds of the server's CPU: of a whole handshake, and of a resumed one."""
    key, chain = make_certificate(HOST, rsa_bits=rsa_bits)
    server, client = build_context(chain, key.encode()), _client()
    client.maximum_version = client.minimum_version = version
    session = None
    whole, resumed = [], []
    for _ in range(rounds):
        whole.append(_shake_hands(server, client, None)[0])
        seconds, is_resumed, next_session = _shake_hands(server, client, session)
        if is_resumed:
            resumed.append(seconds)
        session = next_session
    return statistics.median(whole), statistics.median(resumed)


def _parts() -> dict[str, Callable[[], object]]:
    client, digest = x25519.X25519PrivateKey.generate().public_key(), hashes.SHA256()
    elliptic = ec.generate_private_key(ec.SECP256R1())
    prime = rsa.generate_private_key(65_537, _KEYS["RSA"])
    pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
    return {
        "X25519": lambda: x25519.X25519PrivateKey.generate().exchange(client),
        "ECDSA": lambda: elliptic.sign(b"x", ec.ECDSA(digest)),
        "RSA": lambda: prime.sign(b"x", pss, digest),
    }


def _median(part: Callable[[], object], rounds: int) -> float:
    """Seconds of CPU."""
    times = []
    for _ in range(rounds):
        begun_at = time.thread_time()
        part()
        times.append(time.thread_time() - begun_at)
    return statistics.median(times)


def _shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[float, bool, ssl.SSLSession | None]:
    """Seconds of the server's side, whether it was resumed, and the session for the next one."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asker = client.wrap_bio(to_client, to_server, server_hostname=HOST, session=session)
    answerer = server.wrap_bio(to_server, to_client, server_side=True)
    seconds = 0.0
    steps = [_steps(asker), _steps(answerer)]
    is_done = [False, False]
    while not all(is_done):
        is_done[0] = next(steps[0], True)
        begun_at = time.thread_time()
        is_done[1] = next(steps[1], True)
        seconds += time.thread_time() - begun_at
    begun_at = time.thread_time()
    answerer.write(b"x")
    seconds += time.thread_time() - begun_at
    asker.read(1)  # and with it the ticket
    return seconds, bool(answerer.session_reused), asker.session


def _steps(engine: ssl.SSLObject) -> Iterator[bool]:
    """Whether the handshake is over on this side, each time."""
    while True:
        try:
            engine.do_handshake()
        except ssl.SSLWantReadError:
            yield False
        else:
            yield True


if __name__ == "__main__":
    main()
