"""Does what systemd does for a service with socket units: holds the sockets, and passes them to each process it starts.

``python socket_unit.py NAME=DESCRIPTOR ... -- COMMAND ...`` becomes the command.
"""

from __future__ import annotations

import fcntl
import os
import sys

FIRST_DESCRIPTOR = 3


def main() -> None:
    split = sys.argv.index("--")
    named = [argument.split("=") for argument in sys.argv[1:split]]
    # Out of the way first: one of the sockets may have the number that another is to get.
    sources = [fcntl.fcntl(int(descriptor), fcntl.F_DUPFD, 100) for _, descriptor in named]
    for offset, source in enumerate(sources):
        os.dup2(source, FIRST_DESCRIPTOR + offset)
        os.close(source)
    os.environ["LISTEN_PID"] = str(os.getpid())
    os.environ["LISTEN_FDS"] = str(len(named))
    os.environ["LISTEN_FDNAMES"] = ":".join(name for name, _ in named)
    command = sys.argv[split + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
