"""A generation that only sends the reports its upgrade parent awaits; none while in ``PUPPET_SILENCE`` exists."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from edge.process import generation_messages as control


def main() -> None:
    is_silent = Path(os.environ["PUPPET_SILENCE"]).exists()
    channel = socket.socket(fileno=int(sys.argv[1])).makefile("rwb", buffering=0)
    while line := channel.readline():
        match control.decode_command(line):
            case control.Prepare() if not is_silent:
                channel.write(control.encode(control.Prepared()))
            case control.TakeOver() if not is_silent:
                channel.write(control.encode(control.Serving()))
            case control.StandBack():
                channel.write(control.encode(control.StoodBack()))
            case control.Leave() | control.Stop():
                return


if __name__ == "__main__":
    main()
