"""Listening sockets that systemd holds and passes to a role's first process: sd_listen_fds(3).

The sockets outlive that process: when it is killed, clients queue at them until systemd has started it again. This
module reads the environment and the sockets; it does not accept.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, MutableMapping
from itertools import cycle, islice

from common.errors import OperatorError
from common.host_ports import HostPort
from common.settings import PREFIX

FIRST_DESCRIPTOR = 3
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def take_passed_sockets(
    environ: MutableMapping[str, str], pid: int, role: str, *, needed: Collection[str], optional: Collection[str] = ()
) -> dict[str, list[socket.socket]]:
    """Take the sockets passed to process `pid`, by name (FileDescriptorName=); none without socket units.

    `needed` and `optional` are the names that the role knows. The variables are removed from `environ`: they are
    not for children.

    Raises: OperatorError for a name that the role does not know, and when one that it needs is missing.
    """
    listen_pid, count, names = (environ.pop(name, "") for name in _VARIABLES)
    if listen_pid != str(pid) or not count.isdigit() or count == "0":
        return {}
    passed: dict[str, list[socket.socket]] = {}
    for offset, name in enumerate(names.split(":")[: int(count)]):
        if name not in (*needed, *optional):
            known = " or ".join((*needed, *optional))
            raise OperatorError(f"systemd passes a socket named {name!r}: set FileDescriptorName= to {known}")
        os.set_inheritable(FIRST_DESCRIPTOR + offset, False)
        passed.setdefault(name, []).append(socket.socket(fileno=FIRST_DESCRIPTOR + offset))
    for name in needed:
        if name not in passed:
            raise OperatorError(f"systemd passes no socket named {name}: the {role} needs {' and '.join(needed)}")
    return passed


def check_address(passed: Iterable[socket.socket], address: HostPort, variable: str) -> None:
    """Check that passed sockets listen on the port that the settings state, which redirects name.

    Raises: OperatorError for another port.
    """
    for listener in passed:
        port = listener.getsockname()[1]
        if port != address.port:
            raise OperatorError(
                f"{PREFIX}{variable} is {address}, and systemd's socket listens on port {port}: set one"
            )


def one_for_each(passed: list[socket.socket], count: int) -> list[socket.socket]:
    """Return `count` sockets, one for each worker: those passed in turn, with duplicated descriptors as needed."""
    duplicates = (listener.dup() for listener in islice(cycle(passed), max(0, count - len(passed))))
    return [*passed, *duplicates]
