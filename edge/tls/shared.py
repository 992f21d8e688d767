"""What a worker's TLS connections share: certificates, who is held, who waits for a build, and the counters.

It owns every decision about a *name*: which context, whether to wait, or why not. It must not touch sockets
or SSL objects; it calls `start`, `wait` or `refuse` of a handshake; `start` or `refuse` exactly once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from common.clock import Clock
from common.metrics import Family
from common.names import wildcard_above
from common.secrets import Keyring
from edge.replica.certificate_keys import CertificateUse
from edge.replica.certificates import read_hold_until
from edge.tls.certificate_ends import end_families
from edge.tls.certificates import BuildBudget, CertificateCache, CertificateReader, Missing
from edge.tls.contexts import PROTOCOLS, ServerContext, holds_too_many_sessions
from edge.tls.deadlines import Deadlines
from edge.tls.failures import Failure
from edge.tls.groups import accepted_groups
from edge.tls.holding import Held, Holdable, HoldCaps
from edge.transport.connection_limits import ConnectionLimits
from edge.transport.deferred_work import DeferredWork

# A handshake costs a third of a millisecond: releasing more of them in one turn would stall the others.
_RELEASES_PER_TURN = 8
_SWEEPS_A_CONTEXT_LIFE = 720  # one a minute


class Handshake(Holdable, Protocol):
    """What `TlsShared` calls on a `TlsLayer`."""

    @property
    def server_name(self) -> str:
        """Return the name that the client asked for."""

    def start(self, context: ServerContext) -> None:
        """Make the handshake with this context, or refuse a client that offers none of its protocols."""

    def refuse(self, failure: Failure) -> None:
        """End the handshake."""

    def wait(self, seconds: float) -> None:
        """Hold the handshake for no longer than this. Called again, it counts from then."""


@dataclass(frozen=True, slots=True)
class TlsLimits:
    """The bounds of a worker's handshakes."""

    handshake_seconds: float = 10.0
    hold_seconds: float = 60.0  # however far away an order's `hold_until` is
    behind_seconds: float = 5.0  # for unknown names, while the replica is behind: its writer tries every 3 s
    hold_caps: HoldCaps = field(default_factory=HoldCaps)
    contexts: int = 4096  # 20 KB each
    builds_per_second: float = 400.0  # 0.7-1 ms each: a third of a core at most
    build_burst: int = 16
    waiting_for_build: int = 1024
    context_seconds: float = 12 * 3600.0  # the life of a ticket key: see `contexts`


@dataclass(slots=True)
class TlsCounters:
    """Counts since the worker's start, except `handshaking`."""

    handshaking: int = 0  # connections now without a stream
    handshakes: int = 0  # succeeded
    resumed: int = 0  # of these: by a session ticket or id
    held: int = 0
    cache_hits: int = 0
    context_builds: int = 0
    failed: dict[Failure, int] = field(default_factory=lambda: dict.fromkeys(Failure, 0))


class TlsShared:
    """Decides about a worker's handshakes. Created and closed by the worker.

    `on_replica_change` is called after each change of the replica.
    """

    def __init__(
        self,
        reader: CertificateReader,
        keyring: Keyring,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        limits: TlsLimits | None = None,
        connection_limits: ConnectionLimits | None = None,
        deferred: DeferredWork | None = None,
        protocols: Sequence[str] = PROTOCOLS,
    ) -> None:
        """`protocols` are offered by ALPN, the preferred first."""
        self.loop = loop
        self.limits = limits or TlsLimits()
        self.groups = accepted_groups()
        self.counters = TlsCounters()
        self.deadlines = Deadlines(loop, self.limits.handshake_seconds)
        self.connection_limits = connection_limits or ConnectionLimits()
        self.deferred = deferred or DeferredWork(loop)
        self._clock = clock
        self._reader = reader
        self._certificates = CertificateCache(
            reader, keyring, capacity=self.limits.contexts, now=loop.time, protocols=protocols
        )
        self._budget = BuildBudget(per_second=self.limits.builds_per_second, burst=self.limits.build_burst)
        self._held: Held[Handshake] = Held(self.limits.hold_caps)
        self._queue: dict[Handshake, None] = {}  # to be decided (again), in order
        self._pump: asyncio.TimerHandle | None = None
        self._sweep_contexts()

    def certificate_ends(self) -> list[Family]:
        """Return when the certificates end that clients were presented lately, as counted at most a minute ago."""
        return self._ends

    @property
    def held_now(self) -> int:
        """Return how many handshakes are held."""
        return len(self._held)

    # Called by handshakes ----------------------------------------------------------------------------------

    def arrive(self, handshake: Handshake) -> None:
        """Decide about a handshake whose name is known, or queue it behind those that wait for a build."""
        wait = self._decide(handshake, may_build=not self._queue)
        if not wait:
            return
        if len(self._queue) >= self.limits.waiting_for_build:
            handshake.refuse(Failure.BUSY)
            return
        self._queue[handshake] = None
        self._schedule_pump(wait)

    def leave(self, handshake: Handshake) -> None:
        """Call nothing more on the handshake: it is over, or under way."""
        self._held.remove(handshake)
        self._queue.pop(handshake, None)

    def completed(self, server_name: str, established: ssl.SSLObject) -> None:
        """Count it; and keep the sessions OpenSSL remembers for TLS 1.2 clients bounded."""
        self.counters.handshakes += 1
        self.counters.resumed += bool(established.session_reused)
        if established.version() == "TLSv1.2" and holds_too_many_sessions(established.context):
            for name in (server_name, wildcard_above(server_name)):
                self._certificates.discard(name)

    def review_certificates(self) -> CertificateUse:
        """Return how many of the certificates that were asked for can be used."""
        return self._certificates.review()

    # Called by the worker ----------------------------------------------------------------------------------

    def on_replica_change(self) -> None:
        """Look again at the names that handshakes are held for.

        Replaced certificates need nothing here: the cache compares generations at each handshake.
        """
        for domain in self._held.domains():
            if self._certificates.find(domain) is not Missing.ABSENT or self._hold_seconds(domain) <= 0:
                self._queue.update(dict.fromkeys(self._held.of(domain)))
        if self._queue:
            self._schedule_pump(0)

    def close(self) -> None:
        """Stop looking at held handshakes."""
        self._sweep.cancel()

    def _sweep_contexts(self) -> None:
        self._certificates.discard_older_than(self.limits.context_seconds)
        now = self._clock.now().timestamp()
        self._ends = end_families(self._certificates.ends(now), now)
        self._sweep = self.loop.call_later(self.limits.context_seconds / _SWEEPS_A_CONTEXT_LIFE, self._sweep_contexts)

    # Decisions ---------------------------------------------------------------------------------------------

    def _decide(self, handshake: Handshake, *, may_build: bool) -> float:
        """Tell the handshake how it goes on. Not 0.0: it must wait so many seconds for a build instead."""
        domain = handshake.server_name
        found = self._certificates.find(domain)
        seconds, is_cut_off = 0.0, False
        if found is Missing.ABSENT:
            holds, is_cut_off = self._find_holds(domain), self._reader.is_cut_off()
            # Again, behind them: what ends them brings the certificate in the same commit, or an earlier one.
            names = (domain, wildcard_above(domain))
            for domain in names:
                found = self._certificates.find(domain)
                if found is not Missing.ABSENT:
                    break
            else:
                domain, seconds = holds
        if found is Missing.UNBUILT:
            wait = self._budget.take(self.loop.time()) if may_build else 1 / self.limits.builds_per_second
            if wait:
                return wait
            found = self._certificates.build(domain)
            self.counters.context_builds += 1
        elif isinstance(found, ServerContext):
            self.counters.cache_hits += 1
        if isinstance(found, ServerContext):
            handshake.start(found)
        elif found is Missing.UNUSABLE:
            handshake.refuse(Failure.UNUSABLE_CERTIFICATE)
        else:
            self._hold(handshake, domain, seconds, is_cut_off=is_cut_off)
        return 0.0

    def _hold(self, handshake: Handshake, domain: str, seconds: float, *, is_cut_off: bool) -> None:
        is_held = handshake in self._held
        if seconds <= 0 and not is_cut_off:
            handshake.refuse(Failure.UNKNOWN_NAME)
        elif not is_held and not self._held.add(handshake, domain):
            handshake.refuse(Failure.HOLD_LIMIT)
        elif seconds > 0:
            handshake.wait(seconds)
        elif not is_held:  # else its time runs on
            handshake.wait(self.limits.behind_seconds)
        if not is_held and handshake in self._held:
            self.counters.held += 1

    def _find_holds(self, host: str) -> tuple[str, float]:
        """Return the name whose order the host's handshakes wait for, its own or the wildcard's, and for how long."""
        for name in (host, wildcard_above(host)):
            if (seconds := self._hold_seconds(name)) > 0:
                return name, seconds
        return host, 0.0

    def _hold_seconds(self, domain: str) -> float:
        """Return how long a handshake for this name may still be held; not above 0 when no order runs."""
        order = self._reader.get_raw("order", domain)
        if order is None:
            return 0.0
        return min(read_hold_until(self._reader, order) - self._clock.now().timestamp(), self.limits.hold_seconds)

    # The queue ---------------------------------------------------------------------------------------------

    def _schedule_pump(self, seconds: float) -> None:
        if self._pump is None:
            self._pump = self.loop.call_later(seconds, self._run_pump)

    def _run_pump(self) -> None:
        self._pump = None
        for handshake in list(islice(self._queue, _RELEASES_PER_TURN)):
            wait = self._decide(handshake, may_build=True)
            if wait:
                self._schedule_pump(wait)
                return
            self._queue.pop(handshake, None)
        if self._queue:
            self._schedule_pump(0)
