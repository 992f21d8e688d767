"""What every request of the dashboard goes through, from the outside in.

framed (security headers; failures as pages) → signed_in (the session's user) → protected (a POST is from our own page)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from multidict import MultiDictProxy

from api.dashboard.browser import ROOT, csrf_token, is_same_origin, is_same_token
from api.dashboard.context import DashboardContext
from api.dashboard.rendering import HEADERS, Flash
from api.dashboard.visitors import VISITOR, SignedInVisitor
from api.errors import FORBIDDEN, NOT_A_MEMBER, NOT_FOUND, Refused
from api.requests import REQUEST_ID
from common.accounts import hash_token
from common.actors import Actor, acting
from common.db import sessions, users
from common.db.outages import level_of
from common.errors import DatabaseUnavailable
from common.logs import get_logger

FORM: web.RequestKey[MultiDictProxy[str | bytes | bytearray | web.FileField]] = web.RequestKey("form", MultiDictProxy)
OPEN_ROUTES = frozenset(
    {
        f"{ROOT}/sign-in",
        f"{ROOT}/sign-in/passkey",
        f"{ROOT}/sign-in/oidc",
        f"{ROOT}/sign-in/oidc/return",
        f"{ROOT}/link/{{token}}",
        f"{ROOT}/static/{{digest}}/{{name}}",
    }
)
_FORM_SECONDS = 10.0
# What pages of ours send. Another charset may cost quadratic time (punycode) or make text that none can write.
_FORM_TYPE, _FORM_CHARSET = "application/x-www-form-urlencoded", "utf-8"
_AGAIN_SECONDS = {429: 10, 503: 5}
"""After which a client may ask again (RFC 9110 §10.2.3)."""
_ANSWER = "credential"  # of an authenticator: never stored as it is, and refused in words of its own
_STATUSES = {
    400: ("That did not work", "The request could not be understood. Go back, reload the page, and try again."),
    403: ("This form is out of date", "Nothing was changed. Go back, reload the page, and try again."),
    404: ("There is nothing here", "The page does not exist, or belongs to an organisation that you are no member of."),
    405: ("There is nothing here", "This address does not answer requests of this kind."),
    413: ("That is too large", "What was sent has more bytes than are accepted."),
    429: ("Too many requests", "Wait a moment, then try again."),
    503: ("The database cannot be reached", "Domains are served on meanwhile. Reload this page in a moment."),
}
_GAINED = (
    "You were given more rights, so all that signed you in before has ended: sessions, links, API keys, passkeys and"
    " the password. The new link that was made with the rights signs you in; ask the operator for it."
)
_NO_RIGHT = ("You may not do this", "Your role in this organisation lets you look, and not change this. Ask an owner.")
_ELSE = ("Something went wrong", "The failure is in the log under the id below. Try again in a moment.")

_log = get_logger("api.dashboard")


def framed(context: DashboardContext) -> Middleware:
    """Return the middleware that renders failures as pages and sets the security headers."""

    @web.middleware
    async def frame(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if _has_nul([request.path, *request.query, *request.query.values()]):
                raise web.HTTPNotFound
            response = await handler(request)
        except web.HTTPException as error:
            response = _failed(context, request, error.status)
        except Refused as error:
            response = _failed(context, request, error.refusal.status, error)
        except DatabaseUnavailable as error:
            _log.log(level_of(error), "database unavailable", request_id=request[REQUEST_ID], error=str(error))
            response = _failed(context, request, 503)
        except Exception:  # noqa: BLE001 - the root of a page
            _log.error("page failed", request_id=request[REQUEST_ID], exc_info=True)
            response = _failed(context, request, 500)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            if context.cookies.is_secure:
                response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        return response

    return frame


def _failed(
    context: DashboardContext, request: web.Request, status: int, error: Refused | None = None
) -> web.StreamResponse:
    title, words = _STATUSES.get(status, _ELSE)
    if error is not None and error.refusal == FORBIDDEN:
        title, words = _NO_RIGHT
    elif error is not None and error.refusal not in (NOT_FOUND, NOT_A_MEMBER):
        title, words = error.refusal.message, error.hint or words
    again = request.path_qs if status in _AGAIN_SECONDS and request.method == "GET" else None
    response = context.renderer.page(request, "error.html", status=status, title=title, words=words, again=again)
    if status in _AGAIN_SECONDS:
        response.headers["Retry-After"] = str(_AGAIN_SECONDS[status])
    return response


def signed_in(context: DashboardContext) -> Middleware:
    """Return the middleware that finds the visitor, and sends others to the page of signing in."""

    @web.middleware
    async def sign_in(request: web.Request, handler: Handler) -> web.StreamResponse:
        visitor = await find_visitor(context, request)
        resource = request.match_info.route.resource
        if visitor is not None:
            request[VISITOR] = visitor
            with acting(Actor("dashboard", visitor.user.email, request[REQUEST_ID])):
                return await handler(request)
        if resource is None or resource.canonical in OPEN_ROUTES:
            return await handler(request)
        wanted = ""
        if request.method == "GET" and request.path != ROOT:
            wanted = f"?next={quote(request.rel_url.raw_path_qs, safe='/')}"
        return context.renderer.redirect(f"{ROOT}/sign-in{wanted}", await _why_ended(context, request))

    return sign_in


async def find_visitor(context: DashboardContext, request: web.Request) -> SignedInVisitor | None:
    """Return the visitor whose session the cookie names. Raises: `DatabaseUnavailable`."""
    token = context.cookies.read(request, "session")
    if token is None or (request.match_info.route.resource is not None and _is_static(request)):
        return None
    async with context.database.connection() as connection:
        session = await sessions.find(connection, hash_token(token))
        if session is None:
            return None
        memberships = await users.list_memberships(connection, session.user.id)
    return SignedInVisitor(
        user=session.user,
        user_id=session.user.id,
        is_operator=session.user.is_operator,
        memberships=tuple(memberships),
        by_key=session.by_key,
        session_hash=hash_token(token),
        csrf_token=csrf_token(token),
    )


async def _why_ended(context: DashboardContext, request: web.Request) -> Flash | None:
    """Return why the session of the cookie has ended. Raises: `DatabaseUnavailable`."""
    token = context.cookies.read(request, "session")
    if token is None:
        return None
    async with context.database.connection() as connection:
        by_gain = await sessions.has_ended_by_gain(connection, hash_token(token))
    return Flash(_GAINED if by_gain else "Your session has ended. Sign in again.", "warn")


def _is_static(request: web.Request) -> bool:
    return request.path.startswith(f"{ROOT}/static/")


def protected(context: DashboardContext) -> Middleware:
    """Return the middleware that takes forms only from our own pages."""

    @web.middleware
    async def protect(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method in ("GET", "HEAD"):
            return await handler(request)
        if not is_same_origin(request, context.settings.base_url):
            raise web.HTTPForbidden
        request[FORM] = form = await _read_form(request)
        stored = [text for name, text in form.items() if isinstance(text, str) and name != _ANSWER]
        if _has_nul([*form, *stored]):
            raise web.HTTPBadRequest
        visitor = request.get(VISITOR)
        guest = context.cookies.read(request, "guest")
        expected = visitor.csrf_token if visitor is not None else csrf_token(guest) if guest else None
        if expected is None or not is_same_token(form.get("csrf"), expected):
            raise web.HTTPForbidden
        return await handler(request)

    return protect


def _has_nul(texts: Iterable[str]) -> bool:
    """Whether one has a NUL, which no text in Postgres can hold."""
    return any("\0" in text for text in texts)


async def _read_form(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    is_ours = request.content_type == _FORM_TYPE and (request.charset or _FORM_CHARSET).lower() == _FORM_CHARSET
    if not is_ours or "Content-Encoding" in request.headers:
        raise web.HTTPBadRequest
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            return await request.post()
    except (TimeoutError, ConnectionError, ValueError, web.RequestPayloadError) as error:
        raise web.HTTPBadRequest from error


def text_of(request: web.Request, name: str) -> str:
    """Return a field of the form; an empty text where there is none."""
    value = request[FORM].get(name, "")
    return value if isinstance(value, str) else ""
