"""Ours, nginx and HAProxy started before one origin that answers ``ok``, for benchmarks that talk to each in turn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from bench.lab.ports import free_ports
from bench.peers import HOST, LOAD_CORE, Peer, RunningProxy, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx, nginx
from common.errors import OperatorError

_PEERS: Final[tuple[Peer, ...]] = (Frontage(), Nginx(), HAProxy())
_ORIGIN: Final = 'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }}'


@asynccontextmanager
async def side_by_side(needs: Mapping[str, str]) -> AsyncIterator[list[tuple[str, RunningProxy]]]:
    """The peers by name; all of them have ended afterwards. `needs`: further programs, and the packages with them.

    Raises: `OperatorError` when a program is missing, or a peer does not start.
    """
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    needed = {"taskset": "util-linux", **needs}
    for peer in _PEERS:
        needed |= peer.needs
    if packages := missing(needed):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    with tempfile.TemporaryDirectory(prefix="frontage-peers-") as name:
        os.chmod(name, 0o755)  # nginx' worker is another user when we are root
        write_certificates(Path(name), (HOST,))
        (port,) = free_ports(1)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(nginx(_ORIGIN.format(port=port), core=LOAD_CORE, port=port))
            sites = Sites({HOST: port}, Path(name))
            yield [(peer.name, await stack.enter_async_context(peer.serve(sites))) for peer in _PEERS]
