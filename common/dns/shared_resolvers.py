"""Recursive resolvers, asked for thousands of checks at once, without an answer from c-ares' own cache.

c-ares caches answers as long as a channel lives (`common.dns.channels`). A channel for each domain is safe, but costs
more than the questions themselves (measured: 350 µs, a question 46 µs). So the checks of a moment share one channel:
it takes each question once, a repeated question opens a new channel, and so does the first one after
`_CHANNEL_SECONDS`. Only the name servers of a zone and their addresses, which decide nothing, may come from a shared
answer. Names that c-ares refuses, because they are not host names, are asked by `common.dns.direct`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import aiodns

from common.addresses import AddressPolicy
from common.dns.channels import TRY_SECONDS, open_channel, outcome_of, read_result
from common.dns.direct import DirectClient
from common.dns.questions import Answer, Outcome, Question
from common.dns.replies import read_recursive
from common.dns.servers import SYSTEM_RESOLV_CONF, refuse_forbidden, system_servers
from common.host_ports import HostPort
from common.records import RecordType

_CHANNEL_SECONDS = 0.5
_MOST_QUESTIONS = 2000  # of one channel: its socket, so its source port, is one
_MOST_CHANNELS = 64  # each is a thread and four descriptors
_MOST_DIRECT = 64  # each is a socket
_SILENT_SECONDS = 5.0
_SERVERS_SECONDS = 5.0


class _Channel:
    """One c-ares channel. It is retired when another takes its place, and closed after its last answer."""

    def __init__(self, resolver: aiodns.DNSResolver, now: float, on_close: Callable[[], None]) -> None:
        self._resolver = resolver
        self._ends_at = now + _CHANNEL_SECONDS
        self._on_close = on_close
        self._asked: set[Question] = set()
        self._waiting = 0
        self._is_retired = False

    def can_ask(self, question: Question, now: float, *, may_share: bool) -> bool:
        """Return whether the channel takes this question."""
        if now >= self._ends_at or len(self._asked) >= _MOST_QUESTIONS:
            return False
        return may_share or question not in self._asked

    async def ask(self, name: str, kind: RecordType, owner: str | None) -> Answer | None:
        """Ask a question, and close the channel if it is retired and this was its last one.

        None: the name is no host name, and c-ares takes host names only.
        """
        self._asked.add((name, kind))
        self._waiting += 1
        try:
            result = await self._resolver.query_dns(name, kind)
        except aiodns.error.DNSError as error:
            outcome = outcome_of(error)
            return Answer(outcome) if outcome else None
        except UnicodeError:  # from the IDNA of pycares
            return None
        finally:
            self._waiting -= 1
            await self._close_if_done()
        return read_result(result, kind, owner)

    async def retire(self) -> None:
        """Close the channel after its last answer."""
        if not self._is_retired:
            self._is_retired = True
            await self._close_if_done()

    async def _close_if_done(self) -> None:
        if self._is_retired and not self._waiting:
            await self._resolver.close()
            self._on_close()


class SharedResolvers:
    """Asks resolvers by channels that many checks share.

    Created by `Checking` and by `common.dns.resolvers.Resolver`, which close it. Mutable state: the channel in use
    of each server, the room for more, and the servers that lately timed out.
    """

    def __init__(
        self,
        servers: Sequence[HostPort],
        policy: AddressPolicy,
        *,
        resolv_conf: Path = SYSTEM_RESOLV_CONF,
        most_channels: int = _MOST_CHANNELS,
        try_seconds: float = TRY_SECONDS,
    ) -> None:
        """Prepare to ask `servers`; without any, the system's own are asked. Each try has `try_seconds`.

        Raises: `OperatorError` for one that the policy refuses.
        """
        for server in servers:
            refuse_forbidden(server, policy)
        self._given = tuple(servers)
        self._resolv_conf = resolv_conf
        self._try_seconds = try_seconds
        self._system: tuple[HostPort, ...] = ()
        self._system_until = 0.0
        self._channels: dict[HostPort, _Channel] = {}
        self._room = asyncio.Semaphore(most_channels)
        self._client = DirectClient(most_at_once=_MOST_DIRECT)
        self._silent_until: dict[HostPort, float] = {}

    def servers(self) -> list[HostPort]:
        """Return all servers in the order to ask: those that lately timed out come last."""
        now = asyncio.get_running_loop().time()
        servers = self._given or self._system_servers(now)
        return sorted(servers, key=lambda server: self._silent_until.get(server, 0.0) > now)

    async def ask(
        self, server: HostPort, name: str, kind: RecordType, *, owner: str | None, may_share: bool = False
    ) -> Answer:
        """Ask one server; it ends by itself within seconds.

        With `owner`, only records of that name count, not those that a CNAME led to. With `may_share`, the
        answer may be one that another check has just had.
        """
        channel = await self._channel(server, (name, kind), may_share=may_share)
        if channel is None:
            return Answer(Outcome.TIMEOUT)
        answer = await channel.ask(name, kind, owner)
        if answer is None:
            answer = await self.ask_directly(server, name, kind, owner=owner)
        if answer.outcome is Outcome.TIMEOUT:
            self._silent_until[server] = asyncio.get_running_loop().time() + _SILENT_SECONDS
        return answer

    async def ask_directly(self, server: HostPort, name: str, kind: RecordType, *, owner: str | None) -> Answer:
        """Ask one server without c-ares.

        It costs more, but takes every name and shows for how long the server remembers that there is nothing.
        """
        reply = await self._client.ask(server, name, kind, recursion=True)
        if isinstance(reply, Outcome):
            return Answer(reply)
        message = reply.parse()
        return read_recursive(message, kind, owner) if message else Answer(Outcome.SERVER_FAILURE)

    async def close(self) -> None:
        """Close each channel after its last answer."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.retire()

    async def _channel(self, server: HostPort, question: Question, *, may_share: bool) -> _Channel | None:
        """Return a channel that may take this question, or None when this process has no room for another."""
        channel = self._usable(server, question, may_share=may_share)
        if channel is not None:
            return channel
        await self._room.acquire()
        channel = self._usable(server, question, may_share=may_share)  # another task may have opened one meanwhile
        resolver = None if channel is not None else open_channel(server, try_seconds=self._try_seconds)
        if resolver is None:
            self._room.release()
            return channel
        old = self._channels.get(server)
        fresh = _Channel(resolver, asyncio.get_running_loop().time(), self._room.release)
        self._channels[server] = fresh
        if old is not None:
            await old.retire()
        return fresh

    def _usable(self, server: HostPort, question: Question, *, may_share: bool) -> _Channel | None:
        channel, now = self._channels.get(server), asyncio.get_running_loop().time()
        return channel if channel is not None and channel.can_ask(question, now, may_share=may_share) else None

    def _system_servers(self, now: float) -> tuple[HostPort, ...]:
        if now >= self._system_until:
            self._system, self._system_until = system_servers(self._resolv_conf), now + _SERVERS_SECONDS
        return self._system
