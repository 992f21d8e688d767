"""Questions to the DNS, asked afresh.

c-ares answers from a cache of its own (NXDOMAIN and NODATA for minutes, no switch in pycares) and falls over to
the next server silently. So a *pass* (one look at a domain, whatever it takes) has channels of its own, each for
one server, and never asks the same question twice; which server is asked next is decided here.

Rules
    "could not ask" (server failure, time-out) is never "absent" (no such name, no such data)
    another server is asked only when one could not be asked; one that stays silent is asked last from then on
    everything a pass does ends within `PASS_SECONDS`
This module must not remember an answer beyond its pass.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

import aiodns
import pycares

from common.addresses import AddressPolicy
from common.errors import AddressRefused, OperatorError
from common.records import RecordType, authorization, normal_name, normal_value, text_of
from common.settings import HostPort

PASS_SECONDS = 6.0
MOST_PASSES = 128  # each holds a channel a server, and its descriptors
MAX_CHAIN_HOPS = 8
SYSTEM_RESOLV_CONF = Path("/etc/resolv.conf")

_SERVER_SECONDS = 2.0  # of a pass, for one question to one server; room for a lost datagram
_TRY_SECONDS = 0.6
_TRIES = 2
_MAX_SYSTEM_SERVERS = 3  # as the C library's MAXNS
_FLAGS = (
    pycares.ARES_FLAG_EDNS
    | pycares.ARES_FLAG_NOSEARCH
    | pycares.ARES_FLAG_NOALIASES
    | pycares.ARES_FLAG_NO_DFLT_SVR
    | pycares.ARES_FLAG_NOCHECKRESP  # tell us of SERVFAIL and REFUSED instead of asking again
)


class Outcome(StrEnum):
    """How a question ended. The values are what the API shows as ``code``."""

    RECORDS = "records"
    NO_DATA = "nodata"
    NO_NAME = "nxdomain"
    SERVER_FAILURE = "servfail"
    TIMEOUT = "timeout"  # or nobody there to ask
    UNASKABLE = "unaskable"  # no host has such a name, and c-ares asks of hosts only
    CHAIN = "cname_chain"  # CNAMEs in a circle, or too many of them: nobody can say where they end

    @property
    def is_known(self) -> bool:
        """Whether the DNS has given an answer at all."""
        return self in (Outcome.RECORDS, Outcome.NO_DATA, Outcome.NO_NAME)


@dataclass(frozen=True, slots=True)
class Answer:
    """`values` are in normal form (`common.records`): addresses, names in lower case without the trailing dot; there
    are some only with RECORDS."""

    outcome: Outcome
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a name's CNAMEs lead: `names` in their order, without the first. `end` is how the last question ended:
    RECORDS when it stopped at a name that was waited for, else that of a name without a CNAME."""

    names: tuple[str, ...]
    end: Outcome


_OUTCOMES = {
    aiodns.error.ARES_ENODATA: Outcome.NO_DATA,
    aiodns.error.ARES_ENOTFOUND: Outcome.NO_NAME,
    aiodns.error.ARES_EBADNAME: Outcome.UNASKABLE,
    aiodns.error.ARES_ECONNREFUSED: Outcome.TIMEOUT,
    aiodns.error.ARES_ETIMEOUT: Outcome.TIMEOUT,
    aiodns.error.ARES_ECANCELLED: Outcome.TIMEOUT,
}


class Resolver:
    """Where to ask. One a process; it holds no socket and no answer.

    At most `MOST_PASSES` are open at once; the next wait.

    Without `servers`, each pass asks the system's own (`resolv_conf`), which may stand on private addresses.
    """

    def __init__(
        self,
        servers: Sequence[HostPort],
        policy: AddressPolicy,
        *,
        resolv_conf: Path = SYSTEM_RESOLV_CONF,
    ) -> None:
        """Raises: `OperatorError` for a server the address policy refuses."""
        for server in servers:
            refuse_forbidden(server, policy)
        self._servers = tuple(servers)
        self._resolv_conf = resolv_conf
        self._room = asyncio.Semaphore(MOST_PASSES)

    @contextlib.asynccontextmanager
    async def open_pass(self) -> AsyncIterator[Pass]:
        """A pass for one task, to be left soon."""
        servers = self._servers or system_servers(self._resolv_conf)
        async with self._room, contextlib.AsyncExitStack() as channels:
            opened = [open_channel(server) for server in servers]
            yield Pass([await channels.enter_async_context(channel) for channel in opened if channel is not None])


class Pass:
    """Made by `Resolver.open_pass`. Its time runs from its making."""

    def __init__(self, channels: list[aiodns.DNSResolver]) -> None:
        self._channels = channels  # in the order to ask
        self._answers: dict[tuple[str, RecordType], Answer] = {}
        self._ends_at = asyncio.get_running_loop().time() + PASS_SECONDS

    async def ask(self, name: str, kind: RecordType) -> Answer:
        question = (name, kind)
        if question not in self._answers:
            self._answers[question] = await self._ask_servers(name, kind)
        return self._answers[question]

    async def follow(self, name: str, until: Collection[str]) -> Chain:
        """Follow CNAMEs from `name` to one of `until`, or to their end.

        A loop, or more than `MAX_CHAIN_HOPS`, ends in CHAIN: resolvers give up on them too.
        """
        names: list[str] = []
        while name not in until:
            answer = await self.ask(name, "CNAME")
            if answer.outcome is not Outcome.RECORDS:
                return Chain(tuple(names), answer.outcome)
            name = answer.values[0]
            if name in names or len(names) == MAX_CHAIN_HOPS:
                return Chain(tuple(names), Outcome.CHAIN)
            names.append(name)
        return Chain(tuple(names), Outcome.RECORDS)

    async def _ask_servers(self, name: str, kind: RecordType) -> Answer:
        failure = Outcome.TIMEOUT
        for channel in tuple(self._channels):
            answer = await self._ask_server(channel, name, kind)
            if answer.outcome.is_known:
                return answer
            if answer.outcome is Outcome.SERVER_FAILURE:
                failure = Outcome.SERVER_FAILURE
            else:
                self._channels.remove(channel)
                self._channels.append(channel)
        return Answer(failure)

    async def _ask_server(self, channel: aiodns.DNSResolver, name: str, kind: RecordType) -> Answer:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + _SERVER_SECONDS, self._ends_at)):
                result = await channel.query_dns(name, kind)
        except TimeoutError:
            return Answer(Outcome.TIMEOUT)
        except aiodns.error.DNSError as error:
            return Answer(outcome_of(error))
        values = values_of(result, kind)
        return Answer(Outcome.RECORDS, values) if values else Answer(Outcome.NO_DATA)


def outcome_of(error: aiodns.error.DNSError) -> Outcome:
    return _OUTCOMES.get(error.args[0], Outcome.SERVER_FAILURE)


def values_of(result: pycares.DNSResult, kind: RecordType, owner: str | None = None) -> tuple[str, ...]:
    """What the answer section says of `kind`, in normal form (`common.records`); with `owner`, a name in normal form,
    only what it says of that name: a resolver puts the CNAMEs it followed there too, and where they led."""
    values = []
    for record in result.answer:
        if owner is not None and normal_name(record.name) != owner:
            continue
        if (value := _value(record.data, kind)) is not None:
            values.append(value)
    return tuple(values)


def _value(data: object, kind: RecordType) -> str | None:
    match data:
        case pycares.ARecordData(addr=text) if kind == "A":
            return text
        case pycares.AAAARecordData(addr=text) if kind == "AAAA":
            return normal_value(kind, text)
        case pycares.CNAMERecordData(cname=name) if kind == "CNAME":
            return normal_name(name)
        case pycares.TXTRecordData(data=octets) if kind == "TXT":
            return text_of(octets)
        case pycares.MXRecordData() if kind == "MX":
            return f"{data.priority} {normal_name(data.exchange)}"
        case pycares.NSRecordData(nsdname=name) if kind == "NS":
            return normal_name(name)
        case pycares.CAARecordData() if kind == "CAA":
            value: str | bytes = data.value  # octets where it is not ASCII
            octets = value if isinstance(value, bytes) else value.encode()
            return authorization(data.critical, data.tag, text_of(octets))
        case pycares.SRVRecordData() if kind == "SRV":
            return f"{data.priority} {data.weight} {data.port} {normal_name(data.target)}"
        case pycares.PTRRecordData(dname=name) if kind == "PTR":
            return normal_name(name)
        case pycares.SOARecordData() if kind == "SOA":
            names = f"{normal_name(data.mname)} {normal_name(data.rname)}"
            return f"{names} {data.refresh} {data.retry} {data.expire} {data.minimum}"
        case _:
            return None


def open_channel(server: HostPort) -> aiodns.DNSResolver | None:
    """None when this process has no room for another: the server could not be asked."""
    try:
        return aiodns.DNSResolver([str(server)], timeout=_TRY_SECONDS, tries=_TRIES, flags=_FLAGS)
    except (pycares.AresError, OSError):
        return None


def refuse_forbidden(server: HostPort, policy: AddressPolicy) -> None:
    """Raises: `OperatorError`."""
    try:
        policy.check(ip_address(server.host), server.port)
    except ValueError as error:
        raise OperatorError(f"FRONTAGE_DNS_SERVERS names {server}: give addresses, not names") from error
    except AddressRefused as error:
        raise OperatorError(
            f"FRONTAGE_DNS_SERVERS names {server}, and {error}: allow it in FRONTAGE_ALLOW_PRIVATE_ADDRESSES"
        ) from error


def system_servers(resolv_conf: Path = SYSTEM_RESOLV_CONF) -> tuple[HostPort, ...]:
    """Read anew for each pass: machines change networks."""
    try:
        lines = resolv_conf.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    fields = [line.split() for line in lines]
    servers = [HostPort(words[1], 53) for words in fields if words[:1] == ["nameserver"] and len(words) > 1]
    return tuple(servers[:_MAX_SYSTEM_SERVERS]) or (HostPort("127.0.0.1", 53),)
