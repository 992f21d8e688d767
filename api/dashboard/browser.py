"""What a browser sends and keeps: cookies, proof that a form is ours, and addresses within the dashboard.

Rules
    cookies are HttpOnly and SameSite=Lax; over https also Secure and ``__Host-``: no sibling domain can set them
    a session's token is made at sign-in and never taken from the browser, so that none can be planted
    a POST needs the CSRF token derived from the session's token (before sign-in, from the ``guest`` cookie's), and an
        Origin that is ours; a browser that sends neither Origin nor Sec-Fetch-Site cannot be protected, and is refused
    after sign-in only a path within the dashboard is opened
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from common.accounts import mint_random_token

ROOT = "/dashboard"
FLASH_SECONDS = 60
_DEVICE_SECONDS = 365 * 24 * 60 * 60
LONGEST_COOKIE = 512
_LOCAL_PATH = re.compile(r"/dashboard(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?")


@dataclass(frozen=True, slots=True)
class Cookies:
    """The dashboard's cookies. One instance per process.

    `is_secure` where the dashboard is reached over https.
    """

    is_secure: bool

    def read(self, request: web.Request, name: str) -> str | None:
        """Return the value of a cookie, if the browser sent one."""
        value = request.cookies.get(self._name(name))
        return value if value and value.isascii() and len(value) <= LONGEST_COOKIE else None

    def write(self, response: web.StreamResponse, name: str, value: str, *, seconds: int | None = None) -> None:
        """Without `seconds`, the browser keeps it until it is closed."""
        response.set_cookie(
            self._name(name), value, path="/", httponly=True, secure=self.is_secure, samesite="Lax", max_age=seconds
        )

    def remove(self, response: web.StreamResponse, name: str) -> None:
        """Remove a cookie from the browser."""
        response.del_cookie(self._name(name), path="/", httponly=True, secure=self.is_secure, samesite="Lax")

    def write_session(self, response: web.StreamResponse, token: str, seconds: int) -> None:
        """Set the cookie of a session."""
        self.write(response, "session", token, seconds=seconds)

    def write_device(self, response: web.StreamResponse, value: str) -> None:
        """Set the cookie of a browser that has signed in."""
        self.write(response, "device", value, seconds=_DEVICE_SECONDS)

    def guest(self, request: web.Request) -> str:
        """Return the token of a browser that is not signed in; a new one where it has none."""
        return self.read(request, "guest") or mint_random_token()

    def _name(self, name: str) -> str:
        return f"__Host-frontage-{name}" if self.is_secure else f"frontage-{name}"


def csrf_token(token: str) -> str:
    """Return what forms carry: derived from the cookie's token, which it does not disclose."""
    return hashlib.sha256(b"frontage csrf/" + token.encode()).hexdigest()


def is_same_token(given: object, expected: str) -> bool:
    """Compare two tokens in constant time."""
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given.encode(), expected.encode())


def is_same_origin(request: web.Request, base_url: str) -> bool:
    """Whether a page of ours sent the request."""
    if (site := request.headers.get("Sec-Fetch-Site")) is not None and site != "same-origin":
        return False
    origin = request.headers.get("Origin")
    if origin is None:
        return site == "same-origin"
    try:
        ours, theirs = urlsplit(base_url), urlsplit(origin)
    except ValueError:  # no origin that a browser has
        return False
    if (theirs.scheme, theirs.netloc) == (ours.scheme, ours.netloc):
        return True
    return theirs.netloc == request.headers.get("Host", "") and theirs.scheme in ("http", "https")


def local_path(text: str | None) -> str:
    """Return where to go after signing in: a path of the dashboard, or its beginning for any other text."""
    if text and _LOCAL_PATH.fullmatch(text) and "//" not in text and "/.." not in text:
        return text
    return ROOT
