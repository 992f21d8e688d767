"""``Idempotency-Key``: a POST that is sent again under the same key gets the answer of the first one.

The middleware stands behind the authentication. A key belongs to an application, or to a user where there is none, to
what opened the request, and to the call with its query. Only what was done is kept: a refused request has changed
nothing, and may be sent again as it is.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from api.auth import KEY_HOLDER
from api.errors import KEY_REUSED, KEY_RUNNING, Refused, invalid_body, invalid_parameter, is_product_write
from api.requests import ACCESS, LARGEST_BATCH_BYTES, LARGEST_BODY_BYTES, TENANT, read_raw
from common.db import idempotent_requests as kept
from common.db.idempotent_requests import KeptAnswer, KeyConflict, KeyHold
from common.db.pool import Database
from common.errors import DatabaseUnavailable

FIELD = "Idempotency-Key"
LARGEST_ANSWER_BYTES = 64 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def idempotent(database: Database) -> Middleware:
    """Return the middleware that answers a repeated POST with its first answer."""

    @web.middleware
    async def keep_answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST" or FIELD not in request.headers or TENANT not in request:
            return await handler(request)
        tenant, key = request[TENANT], _key_of(request)
        body = await read_raw(request, invalid_body(request.method, request.path), _most_bytes(request.path))
        async with database.transaction() as connection:
            begun = await kept.begin(connection, tenant, key, hashlib.sha256(body).digest())
        if isinstance(begun, KeptAnswer):
            headers = {"Idempotent-Replayed": "true"}
            return web.Response(status=begun.status, body=begun.body, content_type="application/json", headers=headers)
        if begun is KeyConflict.RUNNING:
            hint = "wait for the first request, then send this one again for its answer"
            raise Refused(KEY_RUNNING, code="idempotency_key_running", hint=hint, retry_after_seconds=1)
        if begun is KeyConflict.OTHER:
            hint = "the key was used for another body: a new request needs a key of its own"
            raise Refused(KEY_REUSED, code="idempotency_key_reused", hint=hint)
        try:
            response = await handler(request)
        except Exception:
            await _settle(database, begun, None)
            raise
        await _settle(database, begun, _answer_to_keep(response))
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


def _answer_to_keep(response: web.StreamResponse) -> KeptAnswer | None:
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return None
    is_kept = response.status < 400 and len(response.body) <= LARGEST_ANSWER_BYTES
    return KeptAnswer(response.status, response.body) if is_kept else None


async def _settle(database: Database, hold: KeyHold, answer: KeptAnswer | None) -> None:
    """Without the database the request counts as running for a while, as one whose process died: it was done."""
    with suppress(DatabaseUnavailable):
        async with database.transaction() as connection:
            if answer is None:
                await kept.forget(connection, hold)
            else:
                await kept.finish(connection, hold, answer)
