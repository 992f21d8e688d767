"""A question to the DNS, how it ended, and where a chain of CNAME records leads. Asks nothing itself.

Rule: "could not ask" (server failure, time-out) is never "absent" (no such name, no such data).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from common.records import RecordType

MAX_CHAIN_HOPS = 8

Question: TypeAlias = tuple[str, RecordType]


class Outcome(StrEnum):
    """How a question ended. The values are what the API shows as ``code``."""

    RECORDS = "records"
    NO_DATA = "nodata"
    NO_NAME = "nxdomain"
    SERVER_FAILURE = "servfail"
    TIMEOUT = "timeout"  # or no server to ask
    CHAIN = "cname_chain"  # CNAMEs in a circle, or too many of them

    @property
    def is_known(self) -> bool:
        """Whether the DNS gave an answer."""
        return self in (Outcome.RECORDS, Outcome.NO_DATA, Outcome.NO_NAME)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question.

    `values` are in normal form (`common.records`): addresses, names in lower case without the trailing dot; there
    are some only with RECORDS. `is_disputed`: other servers of the zone answered differently. `ttl_seconds`: of a
    resolver's answer, how long it may still answer so, 0 where that is not known; of a zone's own server, the
    record's TTL. `aliases`: the values of the CNAME record that a zone's own server has at the name, if the
    question was about another type.
    """

    outcome: Outcome
    values: tuple[str, ...] = ()
    is_disputed: bool = field(default=False, compare=False)
    ttl_seconds: int = field(default=0, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a name's CNAMEs lead: `names` in their order, without the first.

    `end` is how the last question ended: RECORDS when it stopped at a goal, else the outcome for a name without a
    CNAME. `is_disputed`: at some name, other servers of the zone answered differently.
    """

    names: tuple[str, ...]
    end: Outcome
    is_disputed: bool = field(default=False, compare=False)


Ask: TypeAlias = Callable[[str, RecordType], Awaitable[Answer]]


async def follow_chain(ask: Ask, name: str, goals: Collection[str]) -> Chain:
    """Follow CNAMEs from `name` to one of `goals`, or to their end.

    A loop, or more than `MAX_CHAIN_HOPS`, ends in CHAIN: resolvers give up on them too.
    """
    names: list[str] = []
    is_disputed = False
    while name not in goals:
        answer = await ask(name, "CNAME")
        is_disputed |= answer.is_disputed
        if answer.outcome is not Outcome.RECORDS:
            return Chain(tuple(names), answer.outcome, is_disputed)
        name = next((value for value in answer.values if value in goals), answer.values[0])
        if name in names or len(names) == MAX_CHAIN_HOPS:
            return Chain(tuple(names), Outcome.CHAIN, is_disputed)
        names.append(name)
    return Chain(tuple(names), Outcome.RECORDS, is_disputed)
