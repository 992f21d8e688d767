"""What handlers get from a request: its application, and its body within bounds."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from api.access import Access
from api.errors import NOT_JSON, Refusal, Refused, invalid_body
from api.schemas.bodies import Body, parse_body
from common.db.applications import Application

LARGEST_BODY_BYTES = 256 * 1024
LARGEST_BATCH_BYTES = 4 * 1024 * 1024
"""A hundred domains with a hundred records of 200 characters each are 2.6 MB."""
_BODY_SECONDS = 10.0
_SLOWEST_BYTES_PER_SECOND = 128 * 1024  # of large bodies

APPLICATION: web.RequestKey[Application] = web.RequestKey("application", Application)
ACCESS: web.RequestKey[Access] = web.RequestKey("access", Access)
TENANT: web.RequestKey[str] = web.RequestKey("tenant", str)
"""Whose turns and kept answers the request's are: the application that it is about, else the user of its API key."""
CLIENT_ADDRESS: web.RequestKey[str] = web.RequestKey("client_address", str)
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
HAS_FAILED: web.RequestKey[bool] = web.RequestKey("has_failed", bool)  # by a fault of ours, or without the database
RAW_BODY: web.RequestKey[bytes] = web.RequestKey("raw_body", bytes)
RATE_LIMIT: web.RequestKey[dict[str, str]] = web.RequestKey("rate_limit", dict)
"""The response's fields that say how many more requests the application may send."""


def application_of(request: web.Request) -> Application:
    """Return the application that the request was authenticated for."""
    return request[APPLICATION]


def prefers_representation(request: web.Request) -> bool:
    """Return whether the answer to a change is to be what was changed (RFC 7240 §4.2); the first preference counts."""
    for preference in ",".join(request.headers.getall("Prefer", ())).split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "return":
            return value.strip().strip('"') == "representation"
    return False


async def read_body(
    request: web.Request,
    schema: type[Body],
    *,
    not_understood: Refusal | None = None,
    most_bytes: int = LARGEST_BODY_BYTES,
    context: Any = None,
) -> Body:
    """Return the body of this schema.

    `context` is the schema's. `not_understood` is the answer to what is no JSON object, if it is not the usual one.

    Raises: `Refused`; aiohttp's HTTPRequestEntityTooLarge.
    """
    has_type = "Content-Type" in request.headers
    if (has_type and request.content_type != "application/json") or "Content-Encoding" in request.headers:
        raise Refused(NOT_JSON, hint="send application/json, not compressed")
    not_understood = not_understood or invalid_body(request.method, request.path)
    raw = await read_raw(request, not_understood, most_bytes)
    return parse_body(raw, schema, not_understood, context=context)


async def read_raw(request: web.Request, not_understood: Refusal, most_bytes: int) -> bytes:
    """Return the body as sent, read once.

    Raises: `Refused`; aiohttp's HTTPRequestEntityTooLarge.
    """
    if RAW_BODY not in request:
        try:
            async with asyncio.timeout(max(_BODY_SECONDS, most_bytes / _SLOWEST_BYTES_PER_SECOND)):
                request[RAW_BODY] = await request.clone(client_max_size=most_bytes).read()
        except (TimeoutError, ConnectionError, web.RequestPayloadError) as error:
            raise Refused(not_understood, hint="the body did not arrive") from error
    raw = request[RAW_BODY]
    if len(raw) > most_bytes:
        raise web.HTTPRequestEntityTooLarge(max_size=most_bytes, actual_size=len(raw))
    return raw
