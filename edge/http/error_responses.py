"""Every answer the edge gives by itself, in one table: status, machine-readable code, words for people.

A refusal is raised while a request is parsed or routed and rendered once, by `render`.
"""

from __future__ import annotations

import html
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from common.errors import FrontageError


class ErrorResponse(NamedTuple):
    """One of the edge's own answers: status, machine-readable code, words for people."""

    status: int
    code: str
    message: str
    close: bool = False  # the connection's framing can no longer be trusted, or is not worth reading on
    retry_after_seconds: int = 5  # said with a 429 and a 503


BAD_REQUEST: Final = ErrorResponse(400, "bad_request", "The request is not valid HTTP/1.1.", close=True)
BAD_HOST: Final = ErrorResponse(400, "bad_host", "The request needs one valid Host.", close=True)
CLIMBING_PATH: Final = ErrorResponse(400, "climbing_path", "The path climbs above the root.")
NOT_ENROLLED: Final = ErrorResponse(404, "domain_not_enrolled", "There is nothing at this address.")
BLOCKED: Final = ErrorResponse(403, "blocked", "The operator of this service has blocked this address.")
ADDRESS_REFUSED: Final = ErrorResponse(403, "address_refused", "This site cannot be visited from your network.")
METHOD_NOT_ALLOWED: Final = ErrorResponse(405, "method_not_allowed", "This method is not available here.", close=True)
REQUEST_TIMEOUT: Final = ErrorResponse(408, "request_timeout", "The request took too long to arrive.", close=True)
BODY_TOO_LARGE: Final = ErrorResponse(413, "body_too_large", "The request's body is too large.", close=True)
TARGET_TOO_LONG: Final = ErrorResponse(414, "target_too_long", "The address is too long.", close=True)
MISDIRECTED: Final = ErrorResponse(421, "misdirected", "This connection was made for another domain.", close=True)
TOO_MANY_REQUESTS: Final = ErrorResponse(429, "too_many_requests", "Too many requests from your network at once.")
HEAD_TOO_LARGE: Final = ErrorResponse(431, "head_too_large", "The request's header fields are too large.", close=True)
EXPECTATION_FAILED: Final = ErrorResponse(417, "expectation", "Only 100-continue can be expected here.", close=True)
BLOCKED_LEGALLY: Final = ErrorResponse(451, "blocked_legally", "This address is blocked for legal reasons.")
UPLOAD_LOST: Final = ErrorResponse(500, "upload_lost", "The request's body could not be kept.")
UNKNOWN_CODING: Final = ErrorResponse(501, "transfer_coding", "This transfer coding is not supported.", close=True)
ORIGIN_DOWN: Final = ErrorResponse(502, "origin_down", "The application did not answer.")
ORIGIN_INVALID: Final = ErrorResponse(502, "origin_invalid", "The application's answer was not valid HTTP.")
TOO_MANY_CONNECTIONS: Final = ErrorResponse(503, "too_many_connections", "Too many connections are open.", close=True)
MAINTENANCE: Final = ErrorResponse(
    503, "maintenance", "The application is being worked on. It will be back.", retry_after_seconds=60
)
AWAITING_CERTIFICATE: Final = ErrorResponse(503, "certificate_on_its_way", "This domain's certificate is on its way.")
MISCONFIGURED: Final = ErrorResponse(
    503, "domain_misconfigured", "This domain is not set up correctly.", retry_after_seconds=60
)
ORIGIN_UNREACHABLE: Final = ErrorResponse(503, "origin_unreachable", "The application cannot be reached at the moment.")
BUSY: Final = ErrorResponse(503, "busy", "Too many requests are waiting for this application.")
ORIGIN_SLOW: Final = ErrorResponse(504, "origin_slow", "The application took too long to answer.")
BAD_VERSION: Final = ErrorResponse(
    505, "http_version", "This connection speaks HTTP/1.0 and HTTP/1.1 only.", close=True
)
LOOP: Final = ErrorResponse(508, "loop", "This address leads back to itself.")


def blocked(status: int, reason: str) -> ErrorResponse:
    """Return what every request of a blocked domain is answered, with the operator's reason."""
    kind = BLOCKED_LEGALLY if status == BLOCKED_LEGALLY.status else BLOCKED
    return kind._replace(message=f"{kind.message} {reason}")


ALLOW: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

# Not responses: how an exchange ended that one side, or the edge, broke off.
CUT_OFF: Final = ErrorResponse(0, "cut_off", "")
CLIENT_DISCONNECTED: Final = ErrorResponse(499, "client_disconnected", "")  # the status as in nginx's log


class Rejected(FrontageError):
    """A request that gets one of the answers above instead of an origin's. `reason` is for the operator's log."""

    def __init__(self, response: ErrorResponse, reason: str = "") -> None:
        super().__init__(response.code)
        self.response = response
        self.reason = reason


def status_phrase(status: int) -> str:
    """Return the status' phrase, "" for one that has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def render(
    kind: ErrorResponse,
    *,
    request_id: str,
    date_field: bytes,
    wants_html: bool,
    head_only: bool,
    close: bool,
    application_page: str | None = None,
) -> bytes:
    """Return the whole response: a small page for browsers, ``{message, code, request_id}`` for everyone else.

    `application_page` stands in the place of our page; ``{{status}}`` and ``{{request_id}}`` in it are filled in.
    """
    if wants_html:
        page = _page(kind, request_id) if application_page is None else _fill(application_page, kind, request_id)
        content_type, body = b"text/html; charset=utf-8", page.encode()
    else:
        content_type = b"application/json"
        body = orjson.dumps({"message": kind.message, "code": kind.code, "request_id": request_id})
    lines = [
        b"HTTP/1.1 %d %b%b" % (kind.status, status_phrase(kind.status).encode(), date_field),
        b"Content-Type: " + content_type,
        b"Content-Length: %d" % len(body),
        b"Cache-Control: no-store",
        b"X-Request-Id: " + request_id.encode(),
    ]
    if kind.status == 405:
        lines.append(ALLOW)
    if kind.status in (429, 503):
        lines.append(b"Retry-After: %d" % kind.retry_after_seconds)
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n" + (b"" if head_only else body)


def _fill(page: str, kind: ErrorResponse, request_id: str) -> str:
    return page.replace("{{status}}", str(kind.status)).replace("{{request_id}}", html.escape(request_id))


def _page(kind: ErrorResponse, request_id: str) -> str:
    title = html.escape(status_phrase(kind.status) or "Error")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{kind.status} {title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<style>body{font:16px/1.5 system-ui,sans-serif;margin:20vh auto 0;max-width:32rem;padding:0 1.5rem;"
        "color:#1c2330}h1{font-size:1.4rem;margin:0}small{color:#5b6472}"
        "@media(prefers-color-scheme:dark){body{background:#11151c;color:#e5e9f0}small{color:#9aa4b2}}"
        f"</style><main><h1>{kind.status} {title}</h1><p>{html.escape(kind.message)}</p>"
        f"<small>Request {request_id}</small></main></html>"
    )
