"""Verifies passwords, which takes a core for a tenth of a second each, so that guesses keep no known browser waiting.

Rules
    a browser that has signed in to the account before (it has our device cookie) is verified in a lane of its own
    the others share a lane: each IPv4 address, and each IPv6 /48, has the same share
    a guess at an account that does not exist takes as long as any
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from api.rules.passwords import verify_password
from common.errors import FrontageError
from common.fair_queue import FairQueue, TooManyWaiting
from common.ip_addresses import site_key

_STRANGERS_AT_ONCE = 2
_KNOWN_AT_ONCE = 1
_MOST_WAITING = 4  # of one tenant of a lane
_QUEUE_SECONDS = 10.0


class TooManyPasswords(FrontageError):
    """There are more passwords to verify than there is time for."""


class PasswordChecks:
    """Verifies passwords in turn. One instance per process. Mutable state: the lanes."""

    def __init__(self) -> None:
        self._strangers = FairQueue(_STRANGERS_AT_ONCE, most_waiting_per_tenant=_MOST_WAITING)
        self._known = FairQueue(_KNOWN_AT_ONCE, most_waiting_per_tenant=_MOST_WAITING)

    async def verify(
        self, password: str, stored: str | None, *, address: str, email: str, is_known_device: bool
    ) -> bool:
        """Return whether the password is right, in turn with others. Raises: `TooManyPasswords`."""
        async with AsyncExitStack() as stack:
            lane, tenant = (self._known, email) if is_known_device else (self._strangers, site_key(address))
            try:
                async with asyncio.timeout(_QUEUE_SECONDS):
                    await stack.enter_async_context(lane.slot(tenant))
            except (TimeoutError, TooManyWaiting) as error:
                raise TooManyPasswords("too many passwords are being verified") from error
            return await asyncio.to_thread(verify_password, password, stored)
