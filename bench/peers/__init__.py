"""Proxies side by side. A peer knows how to start itself before an origin; `bench.compare` loads and measures it.

To add one: a class with `name`, `needs` and `serve`, in a module that is called like no library, and a line in
`bench.compare`.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

PROXY_CORE = 0
LOAD_CORE = 1
HOST = "shop.customer.localhost"  # what clients ask for: Host and SNI


@dataclass(frozen=True, slots=True)
class Serving:
    """A proxy that serves `HOST` on loopback; `pid` is the root of its process tree."""

    pid: int
    http_port: int
    https_port: int


class Peer(Protocol):
    name: str

    @property
    def needs(self) -> tuple[str, ...]:
        """Programs that must be installed."""

    def serve(self, origin_port: int) -> AbstractAsyncContextManager[Serving]:
        """The proxy before an origin on loopback, pinned to `PROXY_CORE`, until the block ends."""


def missing(programs: tuple[str, ...]) -> list[str]:
    return [program for program in programs if shutil.which(program) is None]
