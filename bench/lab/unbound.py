"""unbound, a caching resolver in earnest: it answers from its cache for as long as TTLs allow, negative ones too.

It serves on a free port of loopback, asks one name server for the zones it is given, and ends with the block.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import dns.asyncquery
import dns.exception
import dns.message

from bench.lab.ports import free_ports
from bench.lab.programs import end_process, last_log_line
from common.errors import OperatorError
from common.host_ports import HostPort
from common.processes import spawn

_START_SECONDS = 20.0
_POLL_SECONDS = 0.02
_PROBE_SECONDS = 0.2

_CONFIGURATION = """
server:
    directory: "{directory}"
    chroot: ""
    username: ""
    pidfile: ""
    use-syslog: no
    do-daemonize: no
    interface: {address.host}@{address.port}
    port: {address.port}
    access-control: 127.0.0.0/8 allow
    do-not-query-localhost: no
    do-ip6: no
    local-zone: "test." nodefault
    module-config: "validator iterator"
    num-threads: 1
remote-control:
    control-enable: no
"""


def find_unbound() -> str | None:
    """Return the command, if the Debian package ``unbound`` is installed."""
    return shutil.which("unbound", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


@contextlib.asynccontextmanager
async def serve_unbound(zones: Mapping[str, HostPort], *, trust_anchors: Sequence[str] = ()) -> AsyncIterator[HostPort]:
    """Yield the resolver's address. `zones` are apexes, each with the server to ask for it.

    Zones with a record in `trust_anchors`, DNSKEY or DS, are validated (DNSSEC).

    Raises: `OperatorError` when unbound is not installed or does not start.
    """
    command = find_unbound()
    if command is None:
        raise OperatorError("unbound is not installed: it is in the Debian package unbound")
    with tempfile.TemporaryDirectory(prefix="frontage-unbound-", ignore_cleanup_errors=True) as made:
        directory, address = Path(made), HostPort("127.0.0.1", *free_ports(1))
        configuration = _CONFIGURATION.format(directory=directory, address=address)
        for zone, server in zones.items():
            configuration += f'stub-zone:\n    name: "{zone}"\n    stub-addr: {server.host}@{server.port}\n'
        configuration += "".join(f"server:\n    trust-anchor: '{anchor}'\n" for anchor in trust_anchors)
        (directory / "unbound.conf").write_text(configuration)
        with (directory / "log").open("wb") as log:
            process = spawn(
                [command, "-d", "-c", str(directory / "unbound.conf")],
                env=os.environ,
                stdout=log,
                stderr=log,
                death_signal=signal.SIGTERM,
            )
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not await _answers(address):
                    if process.poll() is not None:
                        raise OperatorError(f"unbound did not start: {last_log_line(directory / 'log')}")
                    await asyncio.sleep(_POLL_SECONDS)
            yield address
        finally:
            end_process(process)


async def _answers(address: HostPort) -> bool:
    query = dns.message.make_query("localhost", "A")  # which unbound has of its own
    try:
        await dns.asyncquery.udp(query, address.host, port=address.port, timeout=_PROBE_SECONDS)
    except (dns.exception.DNSException, OSError):
        return False
    return True
