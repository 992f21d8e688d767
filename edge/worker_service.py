"""What a worker serves, and its one composition root: reader, keyring, TLS and downstream are wired here.

It must not accept connections or talk to the supervisor: that is the worker's.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from common.metrics import Family


class Service(Protocol):
    """What a worker needs of whatever it serves."""

    def plain_protocol(self) -> asyncio.Protocol:
        """For one connection accepted on EDGE_HTTP."""

    def secure_protocol(self) -> asyncio.Protocol:
        """For one connection accepted on EDGE_HTTPS."""

    def on_replica_change(self) -> None:
        """The replica was committed to."""

    def drain(self) -> None:
        """No keep-alive from now on; may be called again."""

    def is_idle(self) -> bool:
        """No exchange runs."""

    def measurements(self) -> list[Family]: ...

    def close(self) -> None: ...
