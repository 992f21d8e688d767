"""The upgrade parent: the edge's first process, which holds the listening sockets and changes what serves them.

It starts a *generation* (a supervisor and its workers) and, on the signal to upgrade, another one of whatever is
installed by then. It knows nothing of HTTP, TLS or the replica, so that it hardly ever needs a newer version itself.
If the new generation does not start, the old one continues to serve; and the pid that systemd and `frontage up` know
never changes.

One generation at a time has the *active role*: it writes the replica, keeps the node lease and answers at the
admin port.
An upgrade:

    new   Prepare     its workers run, and accept nothing yet               until here no client is affected
    old   StandBack   gives up the active role; its workers continue to accept
    new   TakeOver    takes the active role; its workers accept too
    old   Leave       accepts no more; open connections end within the grace period for upgrades

A failure before the last step ends the new generation and gives the active role back to the old one. A generation that
dies while it serves is replaced in the same way: clients queued at the sockets wait, and are served.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress

from common.clock import Clock, SystemClock
from common.errors import OperatorError
from common.logs import get_logger
from common.processes import announce_ready
from common.settings import PREFIX, Settings
from common.socket_activation import check_address, take_passed_sockets
from edge.process.generation import Ended, Generation
from edge.process.generation_messages import Begin, Command, Leave, Renew, Stop, TakeOver, UpgradeFailed
from edge.process.listeners import ADMIN, DNS, HTTP, HTTPS, Listeners

UPGRADE_SECONDS = 60.0
STOP_SLACK_SECONDS = 5.0  # beyond its grace a generation needs a moment to be gone

log = get_logger("edge.process.upgrade_parent")


class UpgradeParent:
    """Starts, watches and replaces generations. Created by `keep`; when `run` ends, no generation is left."""

    def __init__(
        self,
        start: Callable[[], Generation],
        announce: Callable[[], None],
        clock: Clock,
        *,
        upgrade_seconds: float = UPGRADE_SECONDS,
    ) -> None:
        """Prepare to run. `announce` is called once, when the edge first serves."""
        self._start_one = start
        self._announce = announce
        self._clock = clock
        self._upgrade_seconds = upgrade_seconds
        self._generations: set[Generation] = set()
        self._serving: Generation | None = None
        self._is_upgrade_wanted = asyncio.Event()

    async def run(self, stop: asyncio.Event, *, stop_seconds: float) -> int:
        """Run until `stop` is set, or nothing serves any more. Return the exit status."""
        serving_task = asyncio.create_task(self._serve(), name="keep")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({serving_task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if serving_task.done():
                return serving_task.result()
            serving_task.cancel()
            await asyncio.wait({serving_task})
            return await self._stop(stop_seconds)
        finally:
            for task in (serving_task, stopping):
                task.cancel()
            for generation in list(self._generations):
                await generation.end()

    def upgrade(self) -> None:
        """Let what is installed now serve; asked for during an upgrade, another one follows it."""
        self._is_upgrade_wanted.set()

    def renew_workers(self) -> None:
        """Have the serving generation replace its workers one by one."""
        if self._serving:
            self._serving.send(Renew())

    async def _serve(self) -> int:
        """Serve by one generation after the other. Return the exit status, once nothing serves."""
        serving = self._start()
        try:
            await serving.take_over()
        except Ended as ended:
            return ended.status or 1
        self._serving = serving
        self._announce()
        while True:
            await self._until_upgrade(serving)
            serving = await self._upgrade(serving)
            self._serving = serving
            if serving.life.done():
                return serving.life.result() or 1

    async def _until_upgrade(self, serving: Generation) -> None:
        """Wait until an upgrade is wanted, or the serving generation has died."""
        wanted = asyncio.create_task(self._is_upgrade_wanted.wait(), name="upgrade wanted")
        try:
            await asyncio.wait({wanted, serving.life}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wanted.cancel()
        self._is_upgrade_wanted.clear()

    # An upgrade ------------------------------------------------------------------------------------------

    async def _upgrade(self, old: Generation) -> Generation:
        """Upgrade, and return the generation that serves from now on."""
        try:
            new = self._start()
        except OSError as error:
            return self._refuse_upgrade(old, str(error))
        log.info("upgrade begins", old=old.pid, new=new.pid)
        try:
            await self._hand_over(old, new)
        except (Ended, TimeoutError) as error:
            await new.end()
            return self._refuse_upgrade(old, str(error) or f"did not serve within {self._upgrade_seconds:g} seconds")
        except BaseException:
            await new.end()
            old.send(TakeOver())
            raise
        log.info("upgrade ends: the new generation serves", new=new.pid)
        old.send(Leave())
        return new

    async def _hand_over(self, old: Generation, new: Generation) -> None:
        async with asyncio.timeout(self._upgrade_seconds):
            await new.prepare()
            with suppress(Ended):
                await old.stand_back()
            await new.take_over()

    def _refuse_upgrade(self, old: Generation, reason: str) -> Generation:
        log.error("upgrade failed: the old generation serves on", old=old.pid, reason=reason)
        old.send(TakeOver())
        old.send(UpgradeFailed(self._clock.now().isoformat(), reason))
        return old

    # Generations -----------------------------------------------------------------------------------------

    def _start(self) -> Generation:
        generation = self._start_one()
        self._generations.add(generation)
        generation.life.add_done_callback(lambda life: self._on_end(generation, life))
        return generation

    def _on_end(self, generation: Generation, life: asyncio.Task[int]) -> None:
        self._generations.discard(generation)
        if self._serving:
            report = log.warning if life.result() else log.info
            report("a generation has ended", pid=generation.pid, status=life.result())

    async def _stop(self, seconds: float) -> int:
        command: Command = Stop()
        for generation in self._generations:
            generation.send(command)
        lives = {generation.life for generation in self._generations}
        if not lives:
            return 0
        _, late = await asyncio.wait(lives, timeout=seconds)
        if late:
            log.error("a generation did not stop in time", generations=len(late))
        return 0


async def run_upgrade_parent(settings: Settings, stop: asyncio.Event, *, module: str) -> None:
    """Be the upgrade parent until `stop` is set; `module` is what a generation runs, as ``python -m``.

    Raises: `OperatorError` when an address cannot be had; SystemExit with the status of a generation that failed.
    """
    passed = take_passed_sockets(os.environ, os.getpid(), "edge", needed=(HTTP, HTTPS), optional=(ADMIN, DNS))
    env = dict(os.environ)
    for name, url in (("DATABASE_URL", settings.database_url), ("FEED_URL", settings.feed_url)):
        if url is not None:  # taken from our own environment as a secret; a supervisor needs it
            env[PREFIX + name] = url
    with closing(_listeners(settings, passed)) as listeners:
        begin = Begin(
            [pair.http for pair in listeners.pairs],
            [pair.https for pair in listeners.pairs],
            listeners.admin,
            listeners.dns,
        )
        parent = UpgradeParent(lambda: Generation(module, begin, env), announce_ready, SystemClock())
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, parent.renew_workers)
        loop.add_signal_handler(signal.SIGUSR2, parent.upgrade)
        stopping = asyncio.create_task(_close_when(stop, listeners), name="close")
        try:
            drain_seconds = settings.edge_shutdown_delay_seconds + settings.edge_drain_timeout_seconds
            status = await parent.run(stop, stop_seconds=drain_seconds + STOP_SLACK_SECONDS)
        finally:
            stopping.cancel()
    if status:
        sys.exit(status)


def _listeners(settings: Settings, passed: Mapping[str, list[socket.socket]]) -> Listeners:
    """Return the listening sockets, opened or passed by systemd.

    Raises: `OperatorError`.
    """
    http, https, admin, dns = settings.edge_http, settings.edge_https, settings.edge_admin, settings.edge_dns
    if not passed:
        return Listeners.opened(http, https, admin, settings.edge_workers, dns)
    check_address(passed[HTTP], http, "EDGE_HTTP")
    check_address(passed[HTTPS], https, "EDGE_HTTPS")
    if passed.get(DNS):
        if dns is None:
            raise OperatorError("systemd passes sockets named dns: set FRONTAGE_EDGE_DNS and FRONTAGE_ACME_DNS_ZONE")
        check_address(passed[DNS], dns, "EDGE_DNS")
    return Listeners.passed(passed, admin, settings.edge_workers, dns)


async def _close_when(stop: asyncio.Event, listeners: Listeners) -> None:
    """Close our sockets once `stop` is set: a draining generation still holds them.

    When it closes them, clients must not go on queueing at ours.
    """
    await stop.wait()
    listeners.close()
