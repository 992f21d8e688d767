"""The applicationUrl and redirectTo: one strict grammar (RFC 3986 without userinfo, query and fragment), parsed once.

Whether its address may be dialled is the address policy's business (`common.addresses`), asked about
`ApplicationUrl.address` when the URL is accepted and about every address again when it is dialled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, cast

from common.errors import FrontageError, InvalidName
from common.ip_addresses import IPAddress, parse_address
from common.names import parse_domain, parse_host_name

MAX_URL_CHARACTERS = 2048
MOST_ROOT_PATHS = 100
MOST_ROOT_PATH_CHARACTERS = 1024
_DEFAULT_PORTS = {"http": 80, "https": 443}

# The host is matched loosely here and parsed strictly after. A path is RFC 3986's path-abempty.
_URL = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\x00-\x20/:@?#\[\]\\\x7f]+)"
    r"(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*)"
)


_ROOT_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")


class InvalidUrl(FrontageError):
    """The text is not a URL of the expected kind."""


@dataclass(frozen=True, slots=True)
class ApplicationUrl:
    """A URL of an origin.

    `host` is an A-label name or an IP literal without brackets; `path` is as written, often empty.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        """Return the URL in canonical form."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """The host and port, without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> IPAddress | None:
        """The address that the host itself states: a literal, or a localhost name (RFC 6761 §6.3)."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return IPv4Address("127.0.0.1")
        return parse_address(self.host)


def parse_root_path(text: str) -> str:
    """Check a path that Power asks at the root of the origin (RFC 3986 §3.3); the slash in front may be left out.

    Raises: `InvalidUrl`.
    """
    if len(text) > MOST_ROOT_PATH_CHARACTERS or not _ROOT_PATH.fullmatch(text):
        raise InvalidUrl(
            f"a path such as /static, of at most {MOST_ROOT_PATH_CHARACTERS} characters: other characters than those of"
            " a URL's path are percent-encoded"
        )
    return text


def parse_application_url(text: str) -> ApplicationUrl:
    """Parse the URL of an origin.

    Raises: `InvalidUrl`.
    """
    match = _URL.fullmatch(text) if len(text) <= MAX_URL_CHARACTERS else None
    if match is None:
        raise InvalidUrl("expected http:// or https://, a host, and no userinfo, query or fragment")
    scheme = cast("Literal['http', 'https']", match["scheme"].lower())
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise InvalidUrl("a port is from 1 to 65535")
    return ApplicationUrl(scheme, _parse_host(match["host"]), port, match["path"])


def parse_redirect_target(text: str) -> ApplicationUrl:
    """Parse the target of ``redirectTo``: a URL, or a host name, which is asked over https.

    Paths go before the request's.

    Raises: `InvalidUrl`, also for an address: a redirect leads to another domain.
    """
    url = parse_application_url(text if "://" in text else f"https://{text}")
    try:
        parse_domain(url.host)
    except InvalidName as error:
        raise InvalidUrl(f"expected another domain: {error}") from error
    return url


def parse_webhook_url(text: str) -> str:
    """Return the URL to which events are delivered, in canonical form.

    It is an applicationUrl, and a query may follow, where many receivers have their key.

    Raises: `InvalidUrl`.
    """
    address, mark, query = text.partition("?")
    if len(text) > MAX_URL_CHARACTERS or not _QUERY.fullmatch(query):
        raise InvalidUrl("expected http:// or https://, a host, perhaps a query, and no userinfo or fragment")
    return f"{parse_application_url(address)}{mark}{query}"


def hide_query(url: str, mark: str = "…") -> str:
    """Return the URL with `mark` in place of its query, where receivers of webhooks have their key."""
    address, separator, _ = url.partition("?")
    return f"{address}?{mark}" if separator else url


def _parse_host(text: str) -> str:
    """Return a URL's host in canonical form.

    Raises: `InvalidUrl`.
    """
    try:
        if text.startswith("["):
            return str(IPv6Address(text[1:-1]))
        if re.fullmatch(r"[0-9.]+", text):
            return str(ip_address(text))
        return parse_host_name(text)
    except (ValueError, InvalidName) as error:
        raise InvalidUrl(f"the host is not valid: {error}") from error
