"""``Idempotency-Key``: a POST that is sent again under the same key gets the answer of the first one.

The middleware stands behind the authentication. A key belongs to an application, or to a user where there is none, to
what opened the request, and to the call with its query. Only what was done is kept: a refused request has changed
nothing, and may be sent again as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress
from enum import Enum

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from api.auth import KEY_HOLDER
from api.errors import KEY_REUSED, KEY_RUNNING, Refused, invalid_body, invalid_parameter, is_product_write
from api.requests import ACCESS, LARGEST_BATCH_BYTES, LARGEST_BODY_BYTES, REQUEST_ID, TENANT, read_raw
from common.actors import repeating
from common.db import idempotent_requests as kept
from common.db.idempotent_requests import KeptAnswer, KeyConflict, KeyHold
from common.db.pool import Database
from common.errors import DatabaseUnavailable
from common.retry_pauses import RetryPauses

FIELD = "Idempotency-Key"
LARGEST_ANSWER_BYTES = 64 * 1024
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 2.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class Ending(Enum):
    """How a request ended that leaves no answer."""

    REFUSED = "refused"  # or its answer is not to be kept
    UNKNOWN = "unknown"  # it failed for a reason of ours, and may have been done


class Settlements:
    """Begins and ends requests' holds of their keys, later where the database is away.

    Made and closed by the application.

    A hold that is not ended refuses its request for two minutes, as if it still ran: after a failover, its client could
    not send it again for so long.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: set[asyncio.Task[None]] = set()

    async def begin(
        self, tenant: str, key: bytes, request: bytes, request_id: str
    ) -> KeyHold | KeyConflict | KeptAnswer:
        """Start a request under a key; `request` is a digest of its body.

        Raises: `DatabaseUnavailable`. The hold is freed then: the database may have committed it all the same.
        """
        begun = None
        try:
            async with self._database.transaction() as connection:
                begun = await kept.begin(connection, tenant, key, request, request_id)
        except DatabaseUnavailable:
            if isinstance(begun, KeyHold):
                self._settle_later(begun, Ending.UNKNOWN)
            raise
        return begun

    async def settle(self, hold: KeyHold, ending: KeptAnswer | Ending) -> None:
        """Keep the answer of a request, or free its key where there is none to keep."""
        try:
            await self._write(hold, ending)
        except DatabaseUnavailable:
            self._settle_later(hold, ending)

    async def close(self) -> None:
        """Give up what is pending: its keys are free in two minutes."""
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)

    def _settle_later(self, hold: KeyHold, ending: KeptAnswer | Ending) -> None:
        task = asyncio.create_task(self._write_later(hold, ending), name="settle an idempotent request")
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _write_later(self, hold: KeyHold, ending: KeptAnswer | Ending) -> None:
        """Try again until it is written, or the hold has ended by itself."""
        pauses = RetryPauses(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(kept.LONGEST_SECONDS):
                while True:
                    await asyncio.sleep(pauses.next_seconds())
                    with suppress(DatabaseUnavailable):
                        await self._write(hold, ending)
                        return

    async def _write(self, hold: KeyHold, ending: KeptAnswer | Ending) -> None:
        async with self._database.transaction() as connection:
            if isinstance(ending, KeptAnswer):
                await kept.finish(connection, hold, ending)
            elif ending is Ending.UNKNOWN or hold.earlier:
                await kept.free(connection, hold)
            else:
                await kept.forget(connection, hold)


def idempotent(settlements: Settlements) -> Middleware:
    """Return the middleware that answers a repeated POST with its first answer."""

    @web.middleware
    async def keep_answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST" or FIELD not in request.headers or TENANT not in request:
            return await handler(request)
        tenant, key = request[TENANT], _key_of(request)
        body = await read_raw(request, invalid_body(request.method, request.path), _most_bytes(request.path))
        begun = await settlements.begin(tenant, key, hashlib.sha256(body).digest(), request[REQUEST_ID])
        if isinstance(begun, KeptAnswer):
            headers = {"Idempotent-Replayed": "true"}
            return web.Response(status=begun.status, body=begun.body, content_type="application/json", headers=headers)
        if begun is KeyConflict.RUNNING:
            hint = "wait for the first request, then send this one again for its answer"
            raise Refused(KEY_RUNNING, hint=hint, retry_after_seconds=1)
        if begun is KeyConflict.OTHER:
            hint = "the key was used for another body: a new request needs a key of its own"
            raise Refused(KEY_REUSED, hint=hint)
        try:
            with repeating(begun.earlier):
                response = await handler(request)
        except Exception as error:
            await settlements.settle(begun, Ending.REFUSED if isinstance(error, Refused) else Ending.UNKNOWN)
            raise
        await settlements.settle(begun, _answer_to_keep(response))
        return response

    return keep_answer


def _most_bytes(path: str) -> int:
    return LARGEST_BATCH_BYTES if path.endswith("/batch") else LARGEST_BODY_BYTES


def _key_of(request: web.Request) -> bytes:
    """Return the request's Idempotency-Key. Raises: `Refused`."""
    keys = request.headers.getall(FIELD)
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        status = 502 if is_product_write(request.method, request.path) else 400
        raise Refused(invalid_parameter(FIELD, status=status), hint="one key of 1 to 255 visible ASCII characters")
    access, holder = request.get(ACCESS), request.get(KEY_HOLDER)
    claims = access.bounds if access is not None else ()
    by = (holder.user.id, holder.key.permission.value) if holder is not None else ()
    holds_for = (keys[0], request.path, *request.query.items(), *claims, *by)
    return hashlib.sha256(repr(holds_for).encode()).digest()


def _answer_to_keep(response: web.StreamResponse) -> KeptAnswer | Ending:
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return Ending.REFUSED
    is_kept = response.status < 400 and len(response.body) <= LARGEST_ANSWER_BYTES
    return KeptAnswer(response.status, response.body) if is_kept else Ending.REFUSED
