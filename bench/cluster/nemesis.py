"""The nemesis: breaks one thing after another, repairs it, and waits until everything runs again.

A fault is an async function that returns when what it broke works again. Which faults come, on what and for how long is
drawn from the seed; on whom a fault of "the primary" falls depends on the moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.certificate_world import RoleProcess
from bench.cluster.ending import agree
from bench.cluster.history import History
from bench.cluster.patroni import Member
from bench.cluster.world import ClusterWorld, RoleMachine
from bench.process_tree import descendants
from common.errors import OperatorError

_FAILOVER_SECONDS = 26.0  # Patroni's time to live, and its next look
_WATCHDOG_SECONDS = 15.0  # five less than Patroni's time to live
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
_START_ATTEMPTS = 60
_PAUSE_SECONDS = (1.0, 4.0)
_OF_NAMESPACES = ("isolate-primary", "deaf-primary", "lost-tail", "cut-role", "deaf-role", "full-disk")
FAULTS = (
    "kill-role",
    "stop-role",
    "wrong-clock",
    "slow-links",
    "kill-postgres",
    "power-loss",
    "freeze-primary",
    "switch-over",
    "freeze-etcd",
    *_OF_NAMESPACES,
)
LOSING = ("restored-backup",)
"""Faults that come only where they are asked for: they lose what was written, synchronous or not."""


@dataclass
class Nemesis:
    """Breaks things. `on_fault` is called with each fault's words."""

    world: ClusterWorld
    history: History
    random: Random
    on_fault: Callable[[str], None] = print
    only: Sequence[str] = ()
    """Names of the faults that may come, of `FAULTS`; none: all."""
    done: dict[str, int] = field(default_factory=dict)

    async def work(self, until: float) -> None:
        """Break and repair until that second of the history.

        Every fault comes before one of them comes again; of a few faults that were asked for, each comes.

        Raises: `OperatorError` when something does not recover.
        """
        pending: list[str] = []
        while pending or self.history.now < until:
            if self.history.now >= until and not self.only:
                return
            if not pending:
                pending = [name for name in self._possible() if not self.only or name in self.only]
                self.random.shuffle(pending)
            name = pending.pop()
            await getattr(self, f"_{name.replace('-', '_')}")()
            await self.world.postgres.until_whole()
            self.done[name] = self.done.get(name, 0) + 1
            await agree(self.world, self.history)
            await asyncio.sleep(self.random.uniform(*_PAUSE_SECONDS))

    def _possible(self) -> list[str]:
        """Return the faults that can be made here."""
        impossible = set() if self.world.network.has_namespaces else set(_OF_NAMESPACES)
        if not _FAKETIME.exists():
            impossible.add("wrong-clock")
        names = (*FAULTS, *(name for name in LOSING if name in self.only))
        return [name for name in names if name not in impossible]

    # Roles ------------------------------------------------------------------------------------------------

    async def _kill_role(self) -> None:
        role = self.random.choice(self.world.roles)
        with self._note(f"kill -9 of {role.name}", role.name):
            await role.process.kill()
            await asyncio.sleep(self.random.uniform(0.0, 5.0))
            await _start(role.process)

    async def _stop_role(self) -> None:
        role, seconds = self.random.choice(self.world.roles), self.random.uniform(2.0, 15.0)
        with self._note(f"SIGSTOP of {role.name} for {seconds:.0f} s", role.name):
            _signal(role, signal.SIGSTOP)
            await asyncio.sleep(seconds)
            _signal(role, signal.SIGCONT)
            await asyncio.sleep(1.0)

    async def _wrong_clock(self) -> None:
        role, offset = self.random.choice(self.world.monitors), self.random.choice(("-60s", "+60s"))
        right = role.process
        with self._note(f"{role.name}'s clock is {offset} off", role.name):
            await right.kill()
            role.process = right.with_variables(
                LD_PRELOAD=str(_FAKETIME), FAKETIME=offset, FAKETIME_DONT_FAKE_MONOTONIC="1"
            )
            try:
                await _start(role.process)
                await asyncio.sleep(self.random.uniform(8.0, 15.0))
            finally:
                await role.process.kill()
                role.process = right
            await _start(right)

    async def _slow_links(self) -> None:
        seconds = self.random.uniform(0.02, 0.3)
        with self._note(f"{' and '.join(self.world.links)} are {seconds * 1000:.0f} ms from the database"):
            links = [link for each in self.world.links.values() for link in each]
            for link in links:
                link.one_way_seconds = seconds
            await asyncio.sleep(self.random.uniform(8.0, 15.0))
            for link in links:
                link.one_way_seconds = 0.0

    async def _cut_role(self) -> None:
        await self._part_role(is_deaf_only=False)

    async def _deaf_role(self) -> None:
        await self._part_role(is_deaf_only=True)

    async def _part_role(self, *, is_deaf_only: bool) -> None:
        """Cut a role off the servers of Postgres."""
        role, seconds = self.random.choice(self.world.roles), self.random.uniform(3.0, 20.0)
        how = "hears nothing from" if is_deaf_only else "is cut off"
        with self._note(f"{role.name} {how} the database for {seconds:.0f} s"):
            servers = [member.machine for member in self.world.postgres.members]
            if role.name in self.world.links:  # it reaches them through the lab
                for link in self.world.links[role.name]:
                    link.one_way_seconds = seconds
            else:
                self.world.network.isolate(role.machine, servers, is_deaf_only=is_deaf_only)
            await asyncio.sleep(seconds)
            self.world.network.heal()
            for link in self.world.links.get(role.name, ()):
                link.one_way_seconds = 0.0

    # Postgres ---------------------------------------------------------------------------------------------

    async def _kill_postgres(self) -> None:
        async with self._at_primary("kill -9 of Postgres at") as primary:
            primary.signal(signal.SIGKILL, is_patroni_too=False)

    async def _power_loss(self) -> None:
        async with self._at_primary("loss of power of") as primary:
            primary.power_off()
            await asyncio.sleep(self.random.uniform(5.0, _FAILOVER_SECONDS + 5.0))
            primary.start()

    async def _freeze_primary(self) -> None:
        """Stop a server; a watchdog resets it before its time to live is over, as Patroni's documentation asks for."""
        seconds = self.random.uniform(2.0, 2 * _WATCHDOG_SECONDS)
        async with self._at_primary(f"SIGSTOP for {min(seconds, _WATCHDOG_SECONDS):.0f} s of everything on") as primary:
            primary.signal(signal.SIGSTOP)
            await asyncio.sleep(min(seconds, _WATCHDOG_SECONDS))
            if seconds < _WATCHDOG_SECONDS:
                primary.signal(signal.SIGCONT)
            else:
                primary.power_off()
                await asyncio.sleep(_FAILOVER_SECONDS - _WATCHDOG_SECONDS)
                primary.start()

    async def _switch_over(self) -> None:
        async with self._at_primary("switchover from"):
            await self.world.postgres.switch_over()

    async def _freeze_etcd(self) -> None:
        """Stop what Patroni agrees by; the primary steps down when it cannot renew its lease."""
        seconds = self.random.uniform(2.0, 15.0)
        async with self._at_primary(f"SIGSTOP of etcd for {seconds:.0f} s, which gives its lease to"):
            self.world.postgres.etcd.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            self.world.postgres.etcd.send_signal(signal.SIGCONT)

    async def _restored_backup(self) -> None:
        """Go back to a backup, as after the loss of every server; what was written after it is gone."""
        backup, taken = self.world.directory / f"backup{self.done.get('restored-backup', 0)}", self.history.now
        await self.world.postgres.back_up(backup)
        await asyncio.sleep(self.random.uniform(15.0, 30.0))
        what = f"a backup of {self.history.now - taken:.0f} s ago is restored in place of"
        async with self._at_primary(what, lost_from=taken) as primary:
            await self.world.postgres.restore(backup, primary)

    async def _isolate_primary(self) -> None:
        await self._part_primary("is cut off from everything", is_deaf_only=False)

    async def _deaf_primary(self) -> None:
        await self._part_primary("hears nothing", is_deaf_only=True)

    async def _part_primary(self, how: str, *, is_deaf_only: bool) -> None:
        async with self._at_primary(f"{how}:") as primary:
            others = [each for each in self.world.machines if each is not primary.machine]
            self.world.network.isolate(primary.machine, [*others, self.world.network.lab], is_deaf_only=is_deaf_only)
            await asyncio.sleep(_FAILOVER_SECONDS)
            self.world.network.heal()

    async def _lost_tail(self) -> None:
        """Cut the primary off the other servers only, which clients do not notice, and then take its power."""
        async with self._at_primary("a cut off the standbys, then loss of power of") as primary:
            others = [each.machine for each in self.world.postgres.members if each is not primary]
            self.world.network.isolate(primary.machine, others)
            await asyncio.sleep(self.random.uniform(2.0, 8.0))
            primary.power_off()
            await asyncio.sleep(_FAILOVER_SECONDS)
            self.world.network.heal()  # not before: the kernel would still send what Postgres had written
            primary.start()

    async def _full_disk(self) -> None:
        async with self._at_primary("a full disk at") as primary:
            filler = primary.home / "filler"
            await asyncio.to_thread(_fill, filler)
            await asyncio.sleep(self.random.uniform(5.0, 15.0))
            filler.unlink()

    @contextlib.asynccontextmanager
    async def _at_primary(self, what: str, *, lost_from: float = 0.0) -> AsyncIterator[Member]:
        """Note a fault of the primary that lasts until all servers run again."""
        primary = await self.world.postgres.until_primary()
        self.on_fault(words := f"{what} {primary.name}, the primary")
        with self.history.fault(words, primary.name, takes_primary=True, lost_from=lost_from):
            yield primary
            await self.world.postgres.until_whole()

    def _note(self, what: str, *hits: str) -> contextlib.AbstractContextManager[object]:
        self.on_fault(what)
        return self.history.fault(what, *hits)


async def _start(process: RoleProcess) -> None:
    """Start a role, which ends again while Postgres is away.

    Raises: `OperatorError` when it never starts.
    """
    for _ in range(_START_ATTEMPTS):
        try:
            await process.start()
            return
        except (OperatorError, TimeoutError):
            await process.kill()
            await asyncio.sleep(0.5)
    raise OperatorError(f"the {process.role} does not start again: see {process.log}")


def _signal(role: RoleMachine, number: signal.Signals) -> None:
    for pid in list(descendants(role.process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
