"""Recursive resolvers, asked for many domains at once without ever getting an answer from a cache of ours.

c-ares remembers what it was told as long as a channel lives (`common.dns`). A channel a domain is safe, but costs more
than the questions themselves (seen: 350 µs, a question 46 µs). So all checks of a moment share one, for as long as
nobody asks it the same thing twice: the second to ask gets a new channel, and so does everybody after a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import aiodns

from common.addresses import AddressPolicy
from common.dns import (
    SYSTEM_RESOLV_CONF,
    Answer,
    Outcome,
    open_channel,
    outcome_of,
    refuse_forbidden,
    system_servers,
    values_of,
)
from common.records import RecordType
from common.settings import HostPort

_CHANNEL_SECONDS = 0.5
_MOST_QUESTIONS = 2000  # of one channel: its socket, so its source port, is one
_SILENT_SECONDS = 5.0
_SERVERS_SECONDS = 5.0

Question = tuple[str, RecordType]


class _Channel:
    """One c-ares channel. It is retired when another takes its place, and closed with its last answer."""

    def __init__(self, resolver: aiodns.DNSResolver, now: float) -> None:
        self.resolver = resolver
        self.ends_at = now + _CHANNEL_SECONDS
        self.asked: set[Question] = set()
        self.waiting = 0
        self.is_retired = False

    def can_ask(self, question: Question, now: float) -> bool:
        return now < self.ends_at and len(self.asked) < _MOST_QUESTIONS and question not in self.asked

    async def ask(self, name: str, kind: RecordType, owner: str | None) -> Answer:
        self.asked.add((name, kind))
        self.waiting += 1
        try:
            result = await self.resolver.query_dns(name, kind)
        except aiodns.error.DNSError as error:
            return Answer(outcome_of(error))
        finally:
            self.waiting -= 1
            await self.close_if_done()
        values = values_of(result, kind, owner)
        return Answer(Outcome.RECORDS, values) if values else Answer(Outcome.NO_DATA)

    async def close_if_done(self) -> None:
        if self.is_retired and not self.waiting:
            await self.resolver.close()


class Resolvers:
    """Made by `Checking`, which closes it.

    Mutable state: the channel in use of each server, and which servers have lately been silent.
    """

    def __init__(
        self, servers: Sequence[HostPort], policy: AddressPolicy, *, resolv_conf: Path = SYSTEM_RESOLV_CONF
    ) -> None:
        """Without `servers`, the system's own are asked. Raises: `OperatorError` for one the policy refuses."""
        for server in servers:
            refuse_forbidden(server, policy)
        self._given = tuple(servers)
        self._resolv_conf = resolv_conf
        self._system: tuple[HostPort, ...] = ()
        self._system_until = 0.0
        self._channels: dict[HostPort, _Channel] = {}
        self._silent_until: dict[HostPort, float] = {}

    def servers(self) -> list[HostPort]:
        """All of them in the order to ask: those that have lately been silent come last."""
        now = asyncio.get_running_loop().time()
        servers = self._given or self._system_servers(now)
        return sorted(servers, key=lambda server: self._silent_until.get(server, 0.0) > now)

    async def ask(self, server: HostPort, name: str, kind: RecordType, *, owner: str | None) -> Answer:
        """One question to one server; it ends by itself within seconds. With `owner`, only what is said of that name
        counts, not what a CNAME led to."""
        channel = await self._channel(server, (name, kind))
        if channel is None:
            return Answer(Outcome.TIMEOUT)
        answer = await channel.ask(name, kind, owner)
        if answer.outcome is Outcome.TIMEOUT:
            self._silent_until[server] = asyncio.get_running_loop().time() + _SILENT_SECONDS
        return answer

    async def close(self) -> None:
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.resolver.close()

    async def _channel(self, server: HostPort, question: Question) -> _Channel | None:
        now = asyncio.get_running_loop().time()
        channel = self._channels.get(server)
        if channel is not None and channel.can_ask(question, now):
            return channel
        resolver = open_channel(server)
        if resolver is None:
            return None
        fresh = self._channels[server] = _Channel(resolver, now)
        if channel is not None:
            channel.is_retired = True
            await channel.close_if_done()
        return fresh

    def _system_servers(self, now: float) -> tuple[HostPort, ...]:
        if now >= self._system_until:
            self._system, self._system_until = system_servers(self._resolv_conf), now + _SERVERS_SECONDS
        return self._system
