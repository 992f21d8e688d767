"""Ask an origin the way an edge does, to see whether it answers.

Any HTTP answer will do, whatever its status. Of redirects only one that adds or removes the path's last slash is
followed, once, and reported. The address is the partner's word: it is resolved here (hosts file first, as edges do),
the policy is asked where the socket is made, and time is bounded.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiodns
import aiohttp

from common.addresses import AddressPolicy
from common.db.applications import Application
from common.enrolment.origins import LONGEST_SECONDS, Unreachable
from common.errors import AddressRefused
from common.host_ports import HostPort
from common.pinned import pinned_session
from common.trust import verifying_context
from common.urls import ApplicationUrl, parse_application_url

_LONGEST_FIELD_BYTES = 65_536  # as long as an edge lets an origin's whole head be
_REDIRECTS = (301, 302, 303, 307, 308)


class RootRedirect(NamedTuple):
    """The origin redirects the URL asked to the same one with, or without, the last slash of its path."""

    to: str
    comes_back: bool  # from there it redirects to the URL asked


class OriginProbe:
    """Asks origins over HTTP whether they answer. A process makes one."""

    def __init__(
        self,
        policy: AddressPolicy,
        dns_servers: Sequence[HostPort],
        *,
        api_domain: str | None = None,
        api: HostPort | None = None,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        """Prepare to resolve names with `dns_servers`, or the system's if there are none.

        In the API's own process, `api_domain` is the one under which edges forward to `api`, where it listens:
        that origin answers, or no request would arrive here.
        """
        self._api = (api_domain, api)
        self._longest_seconds = longest_seconds
        self._policy = policy
        self._servers = [str(server) for server in dns_servers] or None
        self._verifying = verifying_context()
        self._trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the system's roots, which take time to load
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE

    async def __call__(self, text: str, domain: str, application: Application) -> RootRedirect | None:
        """Ask the origin at the URL `text` for `domain` the way `application` has set.

        Raises: `Unreachable`.
        """
        url = parse_application_url(text)
        if (domain, HostPort(url.host, url.port)) == self._api:
            return None
        try:
            async with asyncio.timeout(self._longest_seconds):
                return await self._ask(url, await self._resolve(url), domain, application)
        except TimeoutError as error:
            raise Unreachable("timeout") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise Unreachable("certificate", _certificate_fault(error)) from error
        except aiohttp.ClientSSLError as error:
            raise Unreachable("tls") from error
        except (aiohttp.ClientConnectionError, OSError) as error:
            raise _not_connected(error) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise Unreachable("not_http") from error

    async def _ask(
        self, url: ApplicationUrl, addresses: list[str], domain: str, application: Application
    ) -> RootRedirect | None:
        tls = self._verifying if application.origin_verify else self._trusting
        headers = {"Host": domain} if application.send_host == "customer" else {}
        server_name = application.origin_server_name if url.scheme == "https" else None
        async with pinned_session(self._policy, addresses, longest_seconds=self._longest_seconds, tls=tls) as session:
            other = _other_root(url, domain, await _find_redirect(session, url, headers, server_name))
            if other is None:
                return None
            onward = await _find_redirect(session, other, headers, server_name)
            return RootRedirect(str(other), _other_root(other, domain, onward) is not None)

    async def _resolve(self, url: ApplicationUrl) -> list[str]:
        """Resolve the URL's host.

        Raises: `Unreachable`.
        """
        if url.address is not None:
            return [str(url.address)]
        try:
            timeout = self._longest_seconds / 2
            async with aiodns.DNSResolver(nameservers=self._servers, timeout=timeout, tries=2) as resolver:
                found = await resolver.getaddrinfo(url.host, socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except (aiodns.error.DNSError, ValueError, UnicodeError) as error:
            raise Unreachable("unresolved") from error
        return [_text(node.addr[0]) for node in found.nodes]


async def _find_redirect(
    session: aiohttp.ClientSession, url: ApplicationUrl, headers: dict[str, str], server_name: str | None
) -> str | None:
    """Return the Location of a redirect, or None for any other answer."""
    try:
        return await _fetch_head(session, "HEAD", url, headers, server_name)
    except aiohttp.ClientResponseError:  # some servers answer only HEAD wrongly: visitors send GET
        return await _fetch_head(session, "GET", url, headers, server_name)


def _other_root(url: ApplicationUrl, domain: str, location: str | None) -> ApplicationUrl | None:
    """Return the URL with, or without, its path's last slash, if that is where `location` leads."""
    base = url.path.removesuffix("/")
    if location is None or not base:
        return None
    other = replace(url, path=base if url.path.endswith("/") else base + "/")
    with suppress(ValueError):  # it is no URL
        onward = urlsplit(urljoin(str(url), location))
        if onward.path == other.path and onward.hostname in (url.host, domain) and not onward.query + onward.fragment:
            return other
    return None


async def _fetch_head(
    session: aiohttp.ClientSession, method: str, url: ApplicationUrl, headers: dict[str, str], server_name: str | None
) -> str | None:
    async with session.request(
        method,
        str(url),
        allow_redirects=False,
        headers=headers,
        server_hostname=server_name,
        max_line_size=_LONGEST_FIELD_BYTES,
        max_field_size=_LONGEST_FIELD_BYTES,
    ) as answer:
        return answer.headers.get("Location") if answer.status in _REDIRECTS else None


def _certificate_fault(error: aiohttp.ClientConnectorCertificateError) -> str:
    """Return the reason that OpenSSL gives, such as ``certificate has expired``."""
    cause = error.certificate_error
    return cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""


def _not_connected(error: Exception) -> Unreachable:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ConnectionRefusedError):
        return Unreachable("refused")
    if isinstance(cause.__cause__, AddressRefused):
        return Unreachable("forbidden")
    return Unreachable("connection")


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
