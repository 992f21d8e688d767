"""Reaches the first of several database servers that will do, where an address names several.

A server whose packets are dropped answers nothing, so waiting for one server before the next is tried would use up the
whole deadline. The servers are raced instead, in the address's order (as RFC 8305 §5 does with a name's addresses): the
next one is tried once the one before has failed or has been silent for a moment, and the first that will do is used.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from common.errors import DatabaseUnavailable, ReadOnlyDatabase

MAX_HOSTS = 16
_HEAD_START_SECONDS = 0.5  # several round trips between continents: TCP, TLS, password


class Terminable(Protocol):
    """A connection that can be thrown away."""

    def terminate(self) -> None:
        """End it at once."""


_C = TypeVar("_C", bound=Terminable)


def split_hosts(dsn: str) -> list[str]:
    """Return one address for each server that `dsn` names, in its order; `dsn` alone where it names one or none.

    Of several servers, those that only read are passed over unless `dsn` has a `target_session_attrs` of its own:
    every role writes.

    Raises: `ValueError`.
    """
    authority, parts = split_authority(dsn)
    parameters = dict(parse_qsl(parts.query))
    account, at, servers = authority.rpartition("@")
    hosts = (servers or parameters.get("host", "")).split(",")
    if len(hosts) == 1:
        return [dsn]
    if len(hosts) > MAX_HOSTS or not all(hosts):
        raise ValueError(f"expected at most {MAX_HOSTS} servers, each with a host")
    parameters = {"target_session_attrs": "read-write"} | parameters
    if servers:
        return [_address(parts, f"{account}{at}{host}", parameters) for host in hosts]
    ports = parameters.pop("port", "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return [
        _address(parts, authority, parameters | {"host": host} | ({"port": port} if port else {}))
        for host, port in zip(hosts, ports, strict=True)
    ]


def split_authority(dsn: str) -> tuple[str, SplitResult]:
    """Return the authority of an address, which may list several servers, and the address without it.

    `urlsplit` refuses an authority that has another server before one in brackets.
    """
    scheme, slashes, rest = dsn.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    return authority, urlsplit(scheme + slashes + rest.removeprefix(authority))


def with_any_server(dsn: str) -> str:
    """Return `dsn`, by which any server will do, a standby too, unless it has a `target_session_attrs` of its own."""
    if "target_session_attrs=" in dsn:
        return dsn
    return f"{dsn}{'&' if '?' in dsn else '?'}target_session_attrs=any"


def _address(parts: SplitResult, authority: str, parameters: dict[str, str]) -> str:
    """Return the address with this authority and these parameters."""
    return parts._replace(netloc=authority, query=urlencode(parameters, quote_via=quote)).geturl()


async def reach_first(
    addresses: Sequence[str], connect: Callable[[str], Awaitable[_C]], *, within_seconds: float
) -> _C:
    """Return the first connection that `connect` makes to one of `addresses`, and end the attempts that are left.

    Raises: `DatabaseUnavailable` when none succeeds in time; what else `connect` raises, at once.
    """
    head_start = min(_HEAD_START_SECONDS, within_seconds / 2 / len(addresses))
    waiting = deque(addresses)
    attempts: set[asyncio.Future[_C]] = set()
    failures: list[DatabaseUnavailable] = []
    try:
        async with asyncio.timeout(within_seconds):
            while waiting or attempts:
                if waiting:
                    attempts.add(asyncio.ensure_future(connect(waiting.popleft())))
                pause = head_start if waiting else None
                done, _ = await asyncio.wait(attempts, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                for attempt in done:
                    attempts.discard(attempt)
                    try:
                        return attempt.result()
                    except DatabaseUnavailable as error:
                        failures.append(error)
    except TimeoutError:
        failures.append(DatabaseUnavailable("the database did not answer in time"))
    finally:
        await _cancel(attempts)
    raise _most_specific(failures)


async def _cancel(attempts: Collection[asyncio.Future[_C]]) -> None:
    """Cancel the attempts, and end the connections that were made meanwhile."""
    for attempt in attempts:
        attempt.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if not isinstance(outcome, BaseException):
            outcome.terminate()


def _most_specific(failures: Sequence[DatabaseUnavailable]) -> DatabaseUnavailable:
    """Return the failure to report: of a server that answers and does not write, else the last one."""
    return next((failure for failure in failures if isinstance(failure, ReadOnlyDatabase)), failures[-1])
