"""The command line, imported once: a process that forks for each command, which then starts in 20 ms, not in 600.

``python -m tests.integration.cli.forking DESCRIPTOR`` serves the listening socket of that descriptor until its standard
input ends. A client connects, sends one line of JSON (`Command`) with the descriptors for standard output and standard
error, and reads the exit status; a client that closes the connection has the command killed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from typing import Any, TypedDict

import api.cli
import common
from api.cli import __main__ as command_line

_MOST_BYTES = 1 << 16


class Command(TypedDict):
    arguments: tuple[str, ...]
    environment: dict[str, str]


def serve(listener: socket.socket) -> None:
    for package in (common, api.cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the processes that run commands
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _run_one(connection)
                return


def _run_one(connection: socket.socket) -> None:
    message, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, 2)
    while not message.endswith(b"\n"):
        message += connection.recv(_MOST_BYTES)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(json.loads(message), *descriptors)
        command_line.main()
        return
    ended = os.pidfd_open(pid)
    watched: list[Any] = [connection, ended]
    if connection in select.select(watched, [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(command: Command, output: int, errors: int) -> None:
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = [command_line.__file__, *command["arguments"]]
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, descriptor in ((1, output), (2, errors)):
        os.dup2(descriptor, number)
        os.close(descriptor)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
