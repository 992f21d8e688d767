"""Partners at work through the API while it is killed again and again.

What was answered with success must hold, what was refused must have had its reason, and what was not answered may hold
or not. So for each name a set of states is kept that it may be in, which every answer narrows and every missing answer
widens. Records of some hosts that partners ask for are nowhere in the DNS: checks have to find them missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.monitor_faults.notifications import Notifications
from bench.monitor_faults.world import ADDRESS, TTL_SECONDS, MonitorWorld, now

_PRESENT_HOSTS = ("h0", "h1", "h2", "h3", "h4", "h5")
_ABSENT_HOSTS = frozenset({"gone0", "gone1"})
_PAUSE_SECONDS = (0.1, 1.0)
_RETRY_SECONDS = 0.2
# As in `notifications`: a fault that loses something loses it for ever, so these only have to be long.
_BATCH_SECONDS = 300.0  # within which an accepted batch has to be over, once there are no more kills
_FOUND_SECONDS = 300.0  # within which checks have to find what is so, once there are no more kills
_READ = "records of {} cannot be read"

State = frozenset[str] | None
"""The hosts whose records are monitored; none: the name is not."""


@dataclass(frozen=True, slots=True)
class PartnerChange:
    """POST, PUT or DELETE of a monitored domain, or of its records."""

    method: str
    is_of_records: bool
    hosts: frozenset[str]

    def is_accepted(self, state: State) -> bool:
        """Return whether the API accepts the change for a name in that state."""
        return state is not None or (self.method == "POST" and not self.is_of_records)

    def leads_to(self, state: State) -> State:
        """Return the state after the change."""
        match self.method, self.is_of_records:
            case "DELETE", False:
                return None
            case "POST", True:
                return (state or frozenset()) | self.hosts
            case "DELETE", True:
                return (state or frozenset()) - self.hosts
            case _:
                return self.hosts


_CHANGES = (
    ("POST", False),
    ("POST", False),
    ("PUT", False),
    ("DELETE", False),
    ("POST", True),
    ("PUT", True),
    ("DELETE", True),
)


@dataclass(slots=True)
class Name:
    """A name that one task changes, and every state it may be in."""

    domain: str
    may_be: set[State] = field(default_factory=lambda: {None})

    def learn(self, change: PartnerChange, status: int | None) -> bool:
        """Narrow the states by an answer's status, and return whether such an answer was possible.

        None for `status`: there was no answer, so each change may or may not hold.
        """
        done = {change.leads_to(state) for state in self.may_be if change.is_accepted(state)}
        refused = {state for state in self.may_be if not change.is_accepted(state)}
        if status is None or status >= 500:
            self.may_be |= done
            return True
        possible = done if status < 300 else refused
        self.may_be = possible or self.may_be | done
        return bool(possible)

    def see(self, state: State) -> bool:
        """Take the state that was read while nothing was under way, and return whether it was possible."""
        was_possible = state in self.may_be
        self.may_be = {state}
        return was_possible


class Partners:
    """The partners of a run, which calls `run`, `verify` and `audit`. Mutable state: the names they change."""

    def __init__(self, world: MonitorWorld, names: int) -> None:
        """Create the names; half of them are changed one by one, half by batches."""
        self._world = world
        self._names = [Name(f"p{number}.example") for number in range(names)]
        for name in self._names:
            world.host(name.domain)
            for host in _PRESENT_HOSTS:
                world.zone.add(f"{host}.{name.domain}", "A", ADDRESS)
            for host in _ABSENT_HOSTS:
                world.absent[f"{host}.{name.domain}"] = [(now(), None)]

    async def run(self) -> None:
        """Change the names until the world is quiet."""
        half = len(self._names) // 2
        edits = (self._edit(name) for name in self._names[:half])
        await asyncio.gather(*edits, self._send_batches(self._names[half:]))

    async def verify(self) -> None:
        """Check, once everything runs again, that all is as it was answered, and that checks find it so."""
        await asyncio.gather(*(self._verify(name) for name in self._names))

    def audit(self, sent: Notifications) -> None:
        """Check that every record that is missing now was notified."""
        for name in self._names:
            [state] = name.may_be
            events = sent.events.get(name.domain, ())
            unsent = _missing(state) - {host for event in events for host in event.hosts}
            if unsent:
                self._world.counts.missed_transitions += 1
                self._world.counts.add_detail(f"{sorted(unsent)} of {name.domain} are missing, without an event")

    # One by one -------------------------------------------------------------------------------------------

    async def _edit(self, name: Name) -> None:
        """Change one name again and again, and read it after each change."""
        while not self._world.quiet.is_set():
            change = PartnerChange(*self._world.random.choice(_CHANGES), self._draw_hosts())
            path = f"/monitor/domains/{name.domain}/records" if change.is_of_records else "/monitor/domains"
            status, answer = await self._ask(change.method, path, _body(name.domain, change.hosts))
            before = set(name.may_be)
            if not name.learn(change, status):
                self._is_lost(f"{change} of {name.domain} was answered {status} {answer}, which was {_words(before)}")
            await self._pause()
            state = await self._read(name)
            if state is not None and not name.see(state[0]):
                self._is_lost(f"{name.domain} is {_words({state[0]})} after {change} was answered {status}")

    async def _read(self, name: Name) -> tuple[State] | None:
        """Return the state of a name, in a tuple; None if the request was not answered."""
        status, answer = await self._ask("GET", f"/monitor/domains/{name.domain}/records")
        if status == 404:
            return (None,)
        if status != 200:
            return None
        return (frozenset(record["host"] for record in answer),)

    # In batches -------------------------------------------------------------------------------------------

    async def _send_batches(self, names: Sequence[Name]) -> None:
        while names and not self._world.quiet.is_set():
            method = self._world.random.choice(("POST", "POST", "DELETE"))
            change = PartnerChange(method, False, self._draw_hosts())
            await self._send_batch(names, change)
            await self._pause()

    async def _send_batch(self, names: Sequence[Name], change: PartnerChange) -> None:
        """Send a batch until one is answered, and take its outcome.

        One that was not answered may have been accepted too, but is over before it, being the same application's.
        """
        body = {"domains": [_body(name.domain, change.hosts) for name in names]}
        was_unanswered = False
        while True:
            status, answer = await self._ask(change.method, "/monitor/domains/batch", body)
            if status == 201:
                break
            was_unanswered = True
            await asyncio.sleep(_RETRY_SECONDS)
        self._world.counts.batches += 1
        failed = await self._wait_for_batch(answer["request_id"])
        if failed is None:
            self._is_lost(f"batch {answer} is not over")
            return
        for name in names:
            if was_unanswered:
                name.learn(change, None)
            if not name.learn(change, 400 if name.domain in failed else 200):
                self._is_lost(f"{change} of {name.domain} in batch {answer['request_id']}: failed {sorted(failed)}")

    async def _wait_for_batch(self, batch_id: str) -> set[str] | None:
        """Return the domains of the batch that failed; None if it is not over in time."""
        deadline = None
        while deadline is None or time.monotonic() < deadline:
            if deadline is None and self._world.quiet.is_set():
                deadline = time.monotonic() + _BATCH_SECONDS
            status, answer = await self._ask("GET", f"/monitor/domains/batch/status/{batch_id}")
            if status == 200 and answer["status"] != "IN_PROGRESS":
                failed = answer.get("failedDomains", {"domains": []})
                return {item["domain"] for item in failed["domains"]}
            await asyncio.sleep(_RETRY_SECONDS)
        return None

    # In the end -------------------------------------------------------------------------------------------

    async def _verify(self, name: Name) -> None:
        """Check that a name is in a possible state, and that checks find its records so."""
        deadline = time.monotonic() + _FOUND_SECONDS
        while (state := await self._read(name)) is None:
            if time.monotonic() > deadline:
                self._is_lost(f"{name.domain} cannot be read")
                name.may_be = {None}
                return
            await asyncio.sleep(_RETRY_SECONDS)
        may_be = set(name.may_be)
        if not name.see(state[0]):
            self._is_lost(f"{name.domain} is {_words({state[0]})}, and should be {_words(may_be)}")
        while not await self._is_found(name, state[0]):
            if time.monotonic() > deadline:
                self._world.counts.missed_transitions += 1
                self._world.counts.add_detail(f"checks do not find {_words({state[0]})} of {name.domain}")
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _is_found(self, name: Name, state: State) -> bool:
        """Return whether the last check found the present state."""
        status, answer = await self._ask("GET", f"/monitor/domains/{name.domain}")
        if state is None:
            return status == 404
        if status != 200 or answer["records_missing"] is None:
            return False
        present, missing = ({record["host"] for record in answer[f"records_{each}"]} for each in ("present", "missing"))
        return bool(missing == _missing(state) and present == state - missing)

    # ------------------------------------------------------------------------------------------------------

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int | None, Any]:
        """Send a request, and return its status, None where there was none, and the answer's content."""
        try:
            status, answer = await self._world.partner.ask(method, path, body)
        except (aiohttp.ClientError, TimeoutError):
            status, answer = None, {}
        if method != "GET":
            self._count(status)
        return status, answer

    def _count(self, status: int | None) -> None:
        counts = self._world.counts
        if status is None or status >= 500:
            counts.writes_unanswered += 1
        elif status < 300:
            counts.writes_answered += 1
        else:
            counts.writes_refused += 1

    def _is_lost(self, words: str) -> None:
        self._world.counts.lost_writes += 1
        self._world.counts.add_detail(words)

    def _draw_hosts(self) -> frozenset[str]:
        hosts = self._world.random.sample(_PRESENT_HOSTS, k=self._world.random.randint(1, 4))
        is_odd = self._world.random.random() < 0.3
        return frozenset(hosts) | ({self._world.random.choice(sorted(_ABSENT_HOSTS))} if is_odd else set())

    async def _pause(self) -> None:
        await asyncio.sleep(self._world.random.uniform(*_PAUSE_SECONDS))


def _missing(state: State) -> frozenset[str]:
    return (state or frozenset()) & _ABSENT_HOSTS


def _body(domain: str, hosts: frozenset[str]) -> dict[str, Any]:
    records = [{"type": "A", "host": host, "value": ADDRESS, "ttl": TTL_SECONDS} for host in sorted(hosts)]
    return {"domain": domain, "dnsRecords": records}


def _words(states: set[State]) -> str:
    return " or ".join("not monitored" if state is None else str(sorted(state)) for state in states)
