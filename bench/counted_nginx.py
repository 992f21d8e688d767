"""nginx under callgrind, as a proxy with the configuration that it has in `bench.compare`: the same requests counted.

Needs Debian's `valgrind` and `nginx-light`.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.callgrind import counted
from bench.conversation import listening, measure_case
from bench.instruction_cases import HOST, SECURE_ORIGIN_HOST, InstructionCase
from bench.lab.ports import free_ports
from bench.peers import Sites
from bench.peers.certificates import write_certificates
from bench.peers.nginx_proxy import command, proxy_servers
from common.errors import OperatorError

_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


def measure_nginx(chosen: Sequence[InstructionCase], requests: int) -> dict[str, float]:
    """Return nginx's instructions a request, by case.

    Raises: `OperatorError`.
    """
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return {case.key: _measure(case, case.count(requests)) for case in chosen}


def _measure(case: InstructionCase, requests: int) -> float:
    """Count one case: its nginx knows no connection to an origin from another."""
    with tempfile.TemporaryDirectory(prefix="frontage-nginx-") as name, listening() as listener:
        directory = Path(name)
        hosts = (HOST, SECURE_ORIGIN_HOST)
        write_certificates(directory, hosts)
        http_port, https_port = free_ports(2)
        sites = Sites(dict.fromkeys(hosts, listener.getsockname()[1]), directory)
        servers = proxy_servers(sites, http_port, https_port)
        argv = command(directory, servers, directory / "access.log" if case.logs else None)
        with counted(directory, [*argv, "-g", "master_process off;"], os.environ) as process:
            _await_listener(http_port)
            port = https_port if case.secure else http_port
            return sum(measure_case(process, port, listener, case, requests).values())


def _await_listener(port: int) -> None:
    """Wait until nginx accepts connections.

    Raises: `OperatorError`.
    """
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise OperatorError("nginx did not start") from None
            time.sleep(_POLL_SECONDS)
        else:
            return
