"""Recursive resolvers, asked for one task: a *pass* of questions.

Rules
    a pass never asks the same question twice, and no answer about a record comes from a cache of this process
        (`common.dns.shared_resolvers`)
    another server is asked only when one could not be asked; one that does not answer is asked last from then on
    all questions of a pass end within `PASS_SECONDS`, those to zones' own servers (`Pass.authoritative`) included
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from pathlib import Path

from common.addresses import AddressPolicy
from common.dns.asked_once import AskedOnce
from common.dns.authoritative import Authoritative
from common.dns.authority import DNS_PORT, Authority
from common.dns.delegations import Delegations
from common.dns.questions import Answer, Chain, Outcome, follow_chain
from common.dns.servers import SYSTEM_RESOLV_CONF
from common.dns.shared_resolvers import SharedResolvers
from common.host_ports import HostPort
from common.records import RecordType

PASS_SECONDS = 6.0
MOST_PASSES = 128
_MOST_CHANNELS = 2 * MOST_PASSES  # so many may ask the same question at once, each on a channel of its own

_SERVER_SECONDS = 2.0  # of a pass, for one question to one server; room for a lost datagram
_SUFFIX_SECONDS = 300.0
_MOST_SUFFIXES = 2000
_ZONE_SERVERS_AT_ONCE = 2  # where many names are asked about: one more than needed, to see that they differ


class Resolver:
    """Asks the configured recursive resolvers. A process makes one.

    It holds no answer but the servers of public suffixes, for minutes, and sockets only while a pass is open.
    Mutable state: how many passes are open. At most `MOST_PASSES` are open at once; the next wait. Without
    `servers`, each pass asks the system's own (`resolv_conf`), which may stand on private addresses.
    """

    def __init__(
        self,
        servers: Sequence[HostPort],
        policy: AddressPolicy,
        *,
        resolv_conf: Path = SYSTEM_RESOLV_CONF,
        authority_port: int = DNS_PORT,
    ) -> None:
        """Prepare to ask `servers`; `authority_port` is another than 53 only in tests and benchmarks.

        Raises: `OperatorError` for a server the address policy refuses.
        """
        self._resolvers = SharedResolvers(servers, policy, resolv_conf=resolv_conf, most_channels=_MOST_CHANNELS)
        self._open_passes = 0
        self._authority = Authority(policy, port=authority_port)
        self._suffixes = Delegations(longest_seconds=_SUFFIX_SECONDS, most_zones=_MOST_SUFFIXES)
        self._room = asyncio.Semaphore(MOST_PASSES)

    @contextlib.asynccontextmanager
    async def open_pass(self, tenant: str = "") -> AsyncIterator[Pass]:
        """Open a pass for one task, which must leave it soon.

        Tenants share the sockets to zones' own servers evenly.
        """
        async with self._room:
            self._open_passes += 1
            try:
                with contextlib.closing(Pass(self._resolvers, self._authority, tenant, self._suffixes)) as questions:
                    yield questions
            finally:
                self._open_passes -= 1
                if not self._open_passes:
                    await self._resolvers.close()


class Pass:
    """Asks the questions of one task. Made by `Resolver.open_pass`, which closes it; its time begins then.

    `authoritative` asks the zones' own servers, which have no cache, within the same time.
    """

    def __init__(
        self,
        resolvers: SharedResolvers,
        authority: Authority,
        tenant: str,
        suffixes: Delegations,
    ) -> None:
        self._resolvers = resolvers
        self._servers = resolvers.servers()  # in the order to ask
        self._authority = authority
        self._tenant = tenant
        self._suffixes = suffixes
        self._asked: AskedOnce[Answer] = AskedOnce()
        self._ends_at = asyncio.get_running_loop().time() + PASS_SECONDS
        self.authoritative = Authoritative(authority, self._resolve, ends_at=self._ends_at, tenant=tenant)
        self._opened = [self.authoritative]

    def close(self) -> None:
        """End what is still being asked."""
        self._asked.close()
        for opened in self._opened:
            opened.close()

    def zone_questions(
        self, most_questions: int, apex: str | None = None, *, servers_at_once: int = _ZONE_SERVERS_AT_ONCE
    ) -> Authoritative:
        """Open questions to zones' own servers, as `authoritative`, for a task that asks about many names.

        With `apex`, they are about the zone of that apex. Where no server of a zone can be found, the resolvers
        themselves may stand in (`common.dns.authoritative`).
        """
        opened = Authoritative(
            self._authority,
            self._resolve,
            ends_at=self._ends_at,
            tenant=self._tenant,
            most_questions=most_questions,
            servers_at_once=servers_at_once,
            stand_ins=tuple(self._servers),
            apex=apex,
            suffixes=self._suffixes,
        )
        self._opened.append(opened)
        return opened

    async def ask(self, name: str, kind: RecordType) -> Answer:
        """Ask a resolver, which follows CNAMEs unless `kind` is CNAME."""
        return await self._ask(name, kind, None)

    async def follow(self, name: str, goals: Collection[str]) -> Chain:
        """Follow CNAMEs from `name` to one of `goals`, or to their end."""
        return await follow_chain(self.ask, name, goals)

    async def ask_confirmed(self, name: str, kind: RecordType) -> Answer:
        """Return the answer of the zone's own servers, or the resolver's where none of them can be asked.

        A resolver's answer may be as old as its TTL allows, that of "no such name" too (RFC 2308 §5). Where the
        resolver fails, so would the search for the zone's servers, and its failure is the answer.
        """
        answer = await self.ask(name, kind)
        if not answer.outcome.is_known:
            return answer
        confirmed = await self.authoritative.ask(name, kind)
        return confirmed if confirmed.outcome.is_known else answer

    async def follow_confirmed(self, name: str, goals: Collection[str]) -> Chain:
        """Follow CNAMEs as `follow` does, by confirmed answers."""
        return await follow_chain(self.ask_confirmed, name, goals)

    async def resolve_confirmed(self, name: str, *kinds: RecordType) -> list[Answer]:
        """Return confirmed answers about the name where the CNAMEs of `name` end, in the order of `kinds`."""
        chain = await self.follow_confirmed(name, ())
        end = chain.names[-1] if chain.names else name
        return list(await asyncio.gather(*(self.ask_confirmed(end, kind) for kind in kinds)))

    async def _resolve(self, name: str, kind: RecordType) -> Answer:
        return await self._ask(name, kind, name)

    async def _ask(self, name: str, kind: RecordType, owner: str | None) -> Answer:
        return await self._asked.ask((name, kind, owner), partial(self._ask_servers, name, kind, owner))

    async def _ask_servers(self, name: str, kind: RecordType, owner: str | None) -> Answer:
        failure = Outcome.TIMEOUT
        for server in tuple(self._servers):
            answer = await self._ask_server(server, name, kind, owner)
            if answer.outcome.is_known:
                return answer
            if answer.outcome is Outcome.SERVER_FAILURE:
                failure = Outcome.SERVER_FAILURE
            else:
                self._servers.remove(server)
                self._servers.append(server)
        return Answer(failure)

    async def _ask_server(self, server: HostPort, name: str, kind: RecordType, owner: str | None) -> Answer:
        """Ask one server; with an owner, the question is about name servers, which decide nothing."""
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + _SERVER_SECONDS, self._ends_at)):
                return await self._resolvers.ask(server, name, kind, owner=owner, may_share=owner is not None)
        except TimeoutError:
            return Answer(Outcome.TIMEOUT)
