"""Asks RDAP servers (RFC 9082 §3.1.3) whether a domain is registered, gently.

Rules
    an answer counts for `_FRESH_SECONDS`; where a server cannot be asked then, an older one that states a later
        expiration counts on, since that date only moves forward
    the same question asked twice at once is one request
    a server gets at most `_AT_ONCE` requests at once and `_AT_ONCE / _SLOT_SECONDS` a second from this process, shared
        evenly between tenants; one that answers 429 or 503 gets none for the time it asks for
    addresses and redirections come from outside: each is checked against the address policy (`common.pinned`)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import aiohttp

from common.addresses import AddressPolicy
from common.clock import Clock
from common.dns import Resolver
from common.domain_check.registration import Bootstrap, InvalidRdap, RdapFailure, RegistryEntry, read_entry
from common.fair_queue import FairQueue, TooManyWaiting
from common.logs import get_logger
from common.pinned import find_addresses, pinned_session

_log = get_logger("common.domain_check.rdap")

_AT_ONCE = 4
_SLOT_SECONDS = 0.4
_MOST_WAITING = 40  # of a tenant, at one server: four seconds' worth
_REQUEST_SECONDS = 4.0
_ANSWER_SECONDS = 5.0  # the wait for a slot included
_FRESH_SECONDS = 24 * 3600.0
_MOST_KEPT = 20_000
_MOST_BYTES = 512 * 1024
_MOST_REDIRECTIONS = 3
_PAUSE_SECONDS = 30.0  # where the server does not state how long
_LONGEST_PAUSE_SECONDS = 3600.0
_PAUSES = (429, 503)
_REDIRECTIONS = (301, 302, 303, 307, 308)
_HEADERS = {"Accept": "application/rdap+json, application/json", "User-Agent": "frontage"}


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response.

    `location`: where a redirection leads. `pause_seconds`: what a server asks for that has too much to do.
    """

    status: int
    body: bytes = b""
    location: str | None = None
    pause_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _CachedEntry:
    entry: RegistryEntry
    asked_at: float  # monotonic


class RdapClient:
    """Asks RDAP servers about domains. A process makes one; its creator closes it.

    Mutable state: answers, the least recently used dropped first; requests that run, by domain; and by server, its
    queue and until when it is paused.
    """

    def __init__(
        self,
        resolver: Resolver,
        policy: AddressPolicy,
        clock: Clock,
        bootstrap: Callable[[], Awaitable[Bootstrap]],
        *,
        slot_seconds: float = _SLOT_SECONDS,
    ) -> None:
        self._resolver = resolver
        self._policy = policy
        self._clock = clock
        self._bootstrap = bootstrap
        self._slot_seconds = slot_seconds
        self._kept: OrderedDict[str, _CachedEntry] = OrderedDict()
        self._running: dict[str, asyncio.Future[RegistryEntry | RdapFailure]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._queues: dict[str, FairQueue] = {}
        self._paused_until: dict[str, float] = {}

    async def find(self, name: str, tenant: str) -> RegistryEntry | RdapFailure | None:
        """Find what the registry has on `name`, a domain in canonical form. It ends within `_ANSWER_SECONDS`.

        None where its top-level domain has no RDAP server.
        """
        servers = (await self._bootstrap()).find(name)
        if not servers:
            return None
        kept = self._kept.get(name)
        if kept is not None and self._clock.monotonic() - kept.asked_at < _FRESH_SECONDS:
            self._kept.move_to_end(name)
            return kept.entry
        found = await self._ask_once(name, _preferred_server(servers), tenant)
        if isinstance(found, RdapFailure) and kept is not None and self._is_still_registered(kept.entry):
            return kept.entry
        return found

    async def close(self) -> None:
        """Cancel the requests that run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_still_registered(self, entry: RegistryEntry) -> bool:
        return entry.expires_at is not None and not entry.has_expired(self._clock.now())

    async def _ask_once(self, name: str, server: str, tenant: str) -> RegistryEntry | RdapFailure:
        answered = self._running.get(name)
        if answered is None:
            answered = self._running[name] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._ask_in_turn(name, server, tenant, answered), name="rdap: ask")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await asyncio.shield(answered)
        except TimeoutError:
            return RdapFailure.BUSY

    async def _ask_in_turn(
        self, name: str, server: str, tenant: str, answered: asyncio.Future[RegistryEntry | RdapFailure]
    ) -> None:
        """Ask a server when it is the tenant's turn.

        The slot is held for `_slot_seconds` at least, which bounds the rate.
        """
        queue = self._queues.setdefault(server, FairQueue(_AT_ONCE, most_waiting_per_tenant=_MOST_WAITING))
        found: RegistryEntry | RdapFailure = RdapFailure.BUSY
        try:
            async with queue.slot(tenant):
                began = self._clock.monotonic()
                found = await self._ask_server(name, server)
                self._settle(name, answered, found)
                await asyncio.sleep(max(0.0, self._slot_seconds - (self._clock.monotonic() - began)))
        except TooManyWaiting:
            pass
        finally:
            self._settle(name, answered, found)

    def _settle(
        self, name: str, answered: asyncio.Future[RegistryEntry | RdapFailure], found: RegistryEntry | RdapFailure
    ) -> None:
        """Give the answer to the callers that wait for it; the first one counts."""
        if answered.done():
            return
        del self._running[name]
        answered.set_result(found)
        if isinstance(found, RegistryEntry):
            self._kept[name] = _CachedEntry(found, self._clock.monotonic())
            self._kept.move_to_end(name)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    async def _ask_server(self, name: str, server: str) -> RegistryEntry | RdapFailure:
        if self._paused_until.get(server, 0.0) > self._clock.monotonic():
            return RdapFailure.BUSY
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                response = await get(self._resolver, self._policy, f"{server}domain/{name}")
            if response.pause_seconds is not None:
                self._paused_until[server] = self._clock.monotonic() + response.pause_seconds
                return RdapFailure.BUSY
            return read_entry(response.status, response.body, name)
        except (aiohttp.ClientError, OSError, TimeoutError, InvalidRdap, ValueError) as error:
            _log.warning("RDAP server did not answer", server=server, error=f"{type(error).__name__}: {error}")
            return RdapFailure.UNAVAILABLE


def _preferred_server(servers: tuple[str, ...]) -> str:
    """Return the first server over https, or else the first one (RFC 9224 §3)."""
    return next((url for url in servers if url.startswith("https:")), servers[0])


async def get(resolver: Resolver, policy: AddressPolicy, url: str, *, most_bytes: int = _MOST_BYTES) -> Response:
    """GET a URL, following redirections.

    Raises: aiohttp.ClientError, OSError, ValueError, TimeoutError, `InvalidRdap`.
    """
    for _ in range(_MOST_REDIRECTIONS + 1):
        response = await _get_once(resolver, policy, url, most_bytes)
        if response.location is None:
            return response
        url = urljoin(url, response.location)
    raise InvalidRdap("too many redirections")


async def _get_once(resolver: Resolver, policy: AddressPolicy, url: str, most_bytes: int) -> Response:
    host = urlsplit(url).hostname
    if host is None or urlsplit(url).scheme not in ("http", "https"):
        raise InvalidRdap("the URL is none of HTTP")
    addresses = await find_addresses(resolver, host)
    async with (
        pinned_session(policy, addresses, longest_seconds=_REQUEST_SECONDS) as session,
        session.get(url, headers=_HEADERS, allow_redirects=False) as response,
    ):
        if response.status in _PAUSES:
            pause = _pause_seconds(response.headers.get("Retry-After", ""))
            return Response(response.status, pause_seconds=pause)
        if response.status in _REDIRECTIONS and "Location" in response.headers:
            return Response(response.status, location=response.headers["Location"])
        body = b""
        while len(body) <= most_bytes and (more := await response.content.read(65_536)):
            body += more
        if len(body) > most_bytes:
            raise InvalidRdap("the answer is too long")
        return Response(response.status, body)


def _pause_seconds(text: str) -> float:
    seconds = _PAUSE_SECONDS
    with contextlib.suppress(ValueError):
        seconds = float(text)
    return min(max(seconds, 1.0), _LONGEST_PAUSE_SECONDS)
