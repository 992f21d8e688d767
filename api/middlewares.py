"""What every request goes through before its handler, from the outside in.

answered (counts, renders every failure) → limited (by address) → authenticated (all but the open routes; by
application or by user; a token with a scope only where its scope leads, an API key where its user may go) → understood
(query parameters) → admitted (in turn with the other applications) → idempotent (`api.idempotency`) → handler
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from api.admission import FULL_QUEUE_SECONDS, Admission, TooManyWaiting
from api.answers.messages import problem_of
from api.auth import KEY_HOLDER, Authenticator, TokenFault, has_key
from api.client_address import client_address
from api.counters import Counters
from api.cross_origin import CONNECT_SCOPE, is_connect_route, is_preflight
from api.errors import (
    BODY_TOO_LARGE,
    FORBIDDEN,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    Refusal,
    Refused,
    invalid_parameter,
    is_product_write,
    refusal_of_failure,
    refused_by_http,
    status_of,
    too_many_requests,
)
from api.operations import BY_ROUTE, OPERATIONS, Operation
from api.rate_limits import RateLimits
from api.requests import ACCESS, APPLICATION, CLIENT_ADDRESS, HAS_FAILED, RATE_LIMIT, REQUEST_ID, TENANT
from api.responses import respond
from api.schemas.queries import METADATA
from common.actors import Actor, acting
from common.clock import Clock
from common.db.outages import level_of
from common.dns.resolvers import PASS_SECONDS
from common.errors import DatabaseUnavailable
from common.ip_addresses import Network
from common.logs import get_logger
from common.tracing import Span, Tracer

OPEN_ROUTES = frozenset(each.path for each in OPERATIONS if each.is_open) | frozenset(
    {
        "/docs",
        "/docs/",
        "/docs/{page}",
        "/llms.txt",
        "/openapi.json",
        "/sdk/{version}/{file}",
        "/sdk/{version}/words/{file}",
        "/status/{link}",
    }
)
_DASHBOARD = "/dashboard"  # its users sign in by themselves: `api.dashboard.middlewares`
_HEALTH_ROUTES = frozenset({"/healthz", "/readyz"})
_ELIGIBILITY_ROUTES = frozenset({"/power", "/ssl"})
_DNS_ROUTES = frozenset({"/domains/{domain}/diagnosis", "/checkdomain", "/checkrecords"})
_STREAM_ROUTE = "/connect/flows/{id}/events"  # bounded by api.services.flow_watch
_ROUTES_OF_DELETION = frozenset({("GET", "/application"), ("DELETE", "/application")})
_OUTAGE_SECONDS = 5.0
_SPREAD = 3
_KEY_NEEDED = "a user's API key opens this call, or the dashboard does the same; an application's token does not"
_KEY_OF_APPLICATION = (
    "this key opens one application, as its own tokens do: a key of your user opens this call, or the dashboard does it"
)
_TOO_MANY_AT_ONCE = "too many requests of this application at once"
_LONGEST_NAME = 100
_FAILURES = frozenset({500, 503, 504})  # 502 also stands for a refusal of Power and Secure

_log = get_logger("api")


def answered(counters: Counters, clock: Clock, random: Random, tracer: Tracer | None = None) -> Middleware:
    """Return the root of every request: it answers any failure in shape, counts and logs."""

    @web.middleware
    async def answer_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        request[REQUEST_ID] = secrets.token_hex(8)
        response = await _answer(request, handler, random)
        route = _route_of(request)
        method = request.method if request.method in hdrs.METH_ALL else "other"
        seconds = clock.monotonic() - began
        counters.record(route, method, response.status, seconds)
        if response.status in _FAILURES or HAS_FAILED in request:
            counters.record_failure(route)
        _log_request(request, route, method, response.status, seconds)
        if tracer is not None and route not in _HEALTH_ROUTES:
            tracer.record(_span(request, route, method, response.status, clock.now().timestamp() - seconds, seconds))
        return response

    return answer_request


def _log_request(request: web.Request, route: str, method: str, status: int, seconds: float) -> None:
    """Log a line for the request, without any secret; probes of balancers at debug."""
    application = request[APPLICATION].id if APPLICATION in request else None
    log = _log.debug if route in _HEALTH_ROUTES else _log.info
    by_key = {"key": request[KEY_HOLDER].key.id, "user": request[KEY_HOLDER].user.id} if KEY_HOLDER in request else {}
    request_id = request[REQUEST_ID]
    log(
        "request", route=route, method=method, status=status, seconds=round(seconds, 4), application=application,
        request_id=request_id, **by_key,
    )  # fmt: skip


def _span(request: web.Request, route: str, method: str, status: int, began: float, seconds: float) -> Span:
    """Return the span of a request that was answered."""
    return Span(
        f"{method} {route}",
        began,
        seconds,
        request[REQUEST_ID],
        request.headers.get("traceparent"),
        has_failed=status in _FAILURES or HAS_FAILED in request,
        attributes={"http.request.method": method, "http.route": route, "http.response.status_code": status},
    )


def _route_of(request: web.Request) -> str:
    """Return the route that is counted and logged instead of the path.

    The path may hold a sharing link, whose id is all that opens it.
    """
    resource = request.match_info.route.resource
    return resource.canonical if resource else "none"


def _operation_of(request: web.Request) -> Operation[Any] | None:
    """Return the operation of a request; None for a route that is not documented."""
    return BY_ROUTE.get((request.method, _route_of(request)))


async def _answer(request: web.Request, handler: Handler, random: Random) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as error:
        if error.refusal is TOO_MANY_REQUESTS and error.retry_after_seconds is not None:
            error.retry_after_seconds = _spread_seconds(error.retry_after_seconds, random)
        return _render(request, error)
    except web.HTTPException as error:
        response = _render(request, Refused(refusal_of_http(error)))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except DatabaseUnavailable as error:
        _log.log(
            level_of(error),
            "database unavailable",
            route=_route_of(request),
            request_id=request[REQUEST_ID],
            error=str(error),
        )
        request[HAS_FAILED] = True
        refusal = refusal_of_failure(error, request.method, request.path)
        return _render(request, Refused(refusal, retry_after_seconds=_spread_seconds(_OUTAGE_SECONDS, random)))
    except Exception as error:  # noqa: BLE001 - the root of a request
        _log.error("request failed", route=_route_of(request), request_id=request[REQUEST_ID], exc_info=True)
        request[HAS_FAILED] = True
        return _render(request, Refused(refusal_of_failure(error, request.method, request.path)))


def refusal_of_http(error: web.HTTPException) -> Refusal:
    """Return the row for what aiohttp refuses by itself."""
    match error:
        case web.HTTPNotFound():
            return NOT_FOUND
        case web.HTTPMethodNotAllowed():
            return METHOD_NOT_ALLOWED
        case web.HTTPRequestEntityTooLarge():
            return BODY_TOO_LARGE
        case _:
            return refused_by_http(error.status, error.reason)


def _spread_seconds(earliest_seconds: float, random: Random) -> int:
    """Return a random time for another attempt, at the earliest time or later.

    Clients that are refused together would otherwise come back in one burst, before the requests of every other
    application.
    """
    earliest = max(1, math.ceil(earliest_seconds))
    return random.randint(earliest, earliest * _SPREAD)


def _render(request: web.Request, error: Refused) -> web.Response:
    by_kind = is_product_write(request.method, request.path) and (
        APPLICATION in request and request[APPLICATION].error_status == "http"
    )
    response = respond(problem_of(error, request[REQUEST_ID]), status_of(error, by_kind=by_kind))
    if error.refusal.status == UNAUTHORIZED.status:
        challenge = "" if error.code in (UNAUTHORIZED.code, TokenFault.MISSING) else ', error="invalid_token"'
        response.headers["WWW-Authenticate"] = f'Bearer realm="Frontage"{challenge}'  # RFC 6750 §3
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(math.ceil(error.retry_after_seconds))
    return response


def limited(limits: RateLimits, trusted_proxies: tuple[Network, ...]) -> Middleware:
    """Return the middleware that limits the rate of requests by client address."""

    @web.middleware
    async def limit_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        forwarded_for = request.headers.getall("X-Forwarded-For", [])
        request[CLIENT_ADDRESS] = address = client_address(request.remote or "", forwarded_for, trusted_proxies)
        if _route_of(request) not in _HEALTH_ROUTES and (wait := limits.charge_address(address)):
            request[RATE_LIMIT] = limits.address_fields(address)
            raise too_many_requests(wait, "too many requests from this address")
        return await handler(request)

    return limit_request


def authenticated(authenticator: Authenticator, limits: RateLimits, admission: Admission) -> Middleware:
    """Return the middleware that verifies tokens and API keys, and limits the rate of their holders."""

    @web.middleware
    async def authenticate_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        is_open = resource is None or _is_open(resource.canonical) or is_preflight(request, resource.canonical)
        if not is_open:
            named = request.headers.get("applicationId", "")
            by_user = has_key(request.headers)
            try:
                async with admission.verification_slot(request[CLIENT_ADDRESS], named):
                    if by_user:
                        await _verify_key(request, authenticator)
                    else:
                        await _verify_token(request, authenticator)
            except TooManyWaiting as error:
                raise too_many_requests(FULL_QUEUE_SECONDS, _TOO_MANY_AT_ONCE) from error
            payer = request[KEY_HOLDER].user.id if by_user else request[APPLICATION].id
            wait = limits.charge(payer)
            request[RATE_LIMIT] = limits.fields(payer, "user" if by_user else "application")
            if wait:
                raise too_many_requests(wait, f"too many requests of this {'user' if by_user else 'application'}")
            if by_user:
                await _find_for_key(request, authenticator)
            else:
                _refuse_beyond_scope(request)
            actor = request[KEY_HOLDER].actor if by_user else request[APPLICATION].id
            with acting(Actor("api", actor, request[REQUEST_ID])):
                return await handler(request)
        if _route_of(request) in _HEALTH_ROUTES:
            return await handler(request)
        async with admission.open_slot(request[CLIENT_ADDRESS]):
            return await handler(request)

    return authenticate_request


async def _verify_token(request: web.Request, authenticator: Authenticator) -> None:
    """Verify the request's token and note what it opens. Raises: `Refused`, `DatabaseUnavailable`."""
    access = await authenticator.authenticate(request.headers)
    request[ACCESS], request[APPLICATION], request[TENANT] = access, access.application, access.application.id


async def _verify_key(request: web.Request, authenticator: Authenticator) -> None:
    """Verify the request's API key and note its holder. Raises: `Refused`, `DatabaseUnavailable`."""
    holder = await authenticator.find_key_holder(request.headers)
    request[KEY_HOLDER], request[TENANT] = holder, holder.user.id


async def _find_for_key(request: web.Request, authenticator: Authenticator) -> None:
    """Find the application that the request of an API key is about, if it is about one.

    Raises: `Refused` for what the user may not do; `DatabaseUnavailable`.
    """
    operation = _operation_of(request)
    if operation is None:
        raise Refused(FORBIDDEN, code="key", hint="API keys do not open this endpoint")
    holder = request[KEY_HOLDER]
    if operation.by_key_alone and holder.key.application_id is not None:
        raise Refused(FORBIDDEN, code="key_of_application", hint=_KEY_OF_APPLICATION)
    if not operation.has_application:
        return
    access = await authenticator.find_for_key(request.headers, holder, operation.needed)
    if access.application.deleting_at is not None and (operation.method, operation.path) not in _ROUTES_OF_DELETION:
        raise Refused(FORBIDDEN, code="application_deleting", hint="the application is being deleted")
    request[ACCESS], request[APPLICATION], request[TENANT] = access, access.application, access.application.id


def _refuse_beyond_scope(request: web.Request) -> None:
    """Refuse a token whose scope does not open this route. Raises: `Refused`.

    An unknown scope opens none, and no token of an application opens what is a user's.
    """
    if (operation := _operation_of(request)) is not None and operation.by_key_alone:
        raise Refused(FORBIDDEN, code="key_needed", hint=_KEY_NEEDED)
    scope = request[ACCESS].scope
    if scope is None or (scope == CONNECT_SCOPE and is_connect_route(_route_of(request))):
        return
    raise Refused(FORBIDDEN, code="scope", hint="the scope of this token does not open this endpoint")


def _is_open(route: str) -> bool:
    return route in OPEN_ROUTES or route == _DASHBOARD or route.startswith(f"{_DASHBOARD}/")


def _unknown(query: Collection[str], known: Collection[str]) -> str | None:
    """Return a parameter that is not known; what follows `metadata.` is a key of the application's."""
    of_metadata = METADATA if f"{METADATA}key" in known else "\0"
    return next((name for name in query if name not in known and not name.startswith(of_metadata)), None)


def understood(queries: Mapping[tuple[str, str], Collection[str]]) -> Middleware:
    """Return the middleware that refuses query parameters which the call does not take.

    A misspelt parameter is not taken for absent. `queries`: the parameters of each call.
    """

    @web.middleware
    async def understand_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        known = queries.get((request.method, _route_of(request)))
        if known is not None and (unknown := _unknown(request.query, known)):
            hint = f"known here: {', '.join(sorted(known))}" if known else "this call takes no query parameters"
            raise Refused(invalid_parameter(unknown[:_LONGEST_NAME]), hint=hint)
        return await handler(request)

    return understand_request


def admitted(admission: Admission) -> Middleware:
    """Return the middleware that bounds how many requests of an application run at once."""

    @web.middleware
    async def admit_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        if TENANT not in request or _route_of(request) == _STREAM_ROUTE:
            return await handler(request)
        slot, free_after_seconds = admission.slot, FULL_QUEUE_SECONDS
        if _asks_dns(request):
            slot, free_after_seconds = admission.dns_slot, PASS_SECONDS
        try:
            async with slot(request[TENANT]):
                return await handler(request)
        except TooManyWaiting as error:
            raise too_many_requests(free_after_seconds, _TOO_MANY_AT_ONCE) from error

    return admit_request


def _asks_dns(request: web.Request) -> bool:
    route = _route_of(request)
    if route in _ELIGIBILITY_ROUTES:
        return "domain" in request.query if request.method == "GET" else request.method != "DELETE"
    return route in _DNS_ROUTES
