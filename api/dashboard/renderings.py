"""Live parts of pages, rendered once for all viewers who see the same.

A rendering knows its arguments and nothing else of those who see it: neither a request nor a user. Viewers with equal
parts share one rendering, so that it can show nothing to one of them that another may not see. Access is checked by
the stream of each viewer (`api.dashboard.live`).

Rules
    a part is rendered by one task, from its first viewer until its last one leaves
    a rendering that took t seconds is not made again before `_PAUSE_FACTOR` times t
    at most `_MOST_AT_ONCE` renderings run, shared out between organisations; one that waits for long, as for the DNS,
        gives its place up, so that it does not hold those of others
    a viewer gets what was rendered after it came, as its page may be newer than what was rendered before
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field

from aiohttp import web

from api.errors import Refused
from common.clock import Clock
from common.errors import DatabaseUnavailable
from common.fair_queue import FairQueue
from common.logs import get_logger

_MOST_AT_ONCE = 4
_LONGEST_HOLD_SECONDS = 1.0
_PAUSE_FACTOR = 10

_log = get_logger("api.dashboard")


@dataclass(frozen=True, slots=True)
class LivePart:
    """A part of a page that stays up to date.

    `render(*given)` returns elements as `api.dashboard.live.into` makes them. It is called `after` seconds from the
    first viewer on, then every `every` seconds or less often. `tenant`: the organisation that is charged for it.

    `render` is a bound method of an object that lives as long as the process: it is part of what is compared.
    """

    render: Callable[..., Awaitable[str]]
    given: tuple[Hashable, ...]
    tenant: str
    every: float
    after: float = 0.0


class Viewer:
    """One stream's view of its parts; made by `Renderings.viewer`.

    Mutable state: by part, what the viewer has got, and what is new since. `has_ended`: a part cannot be rendered any
    more.
    """

    def __init__(self, renderings: Renderings) -> None:
        self._renderings = renderings
        self._got: dict[LivePart, str] = {}
        self._new: dict[LivePart, str] = {}
        self._changed = asyncio.Event()
        self.has_ended = False

    def follow(self, parts: Iterable[LivePart]) -> None:
        """See these parts from now on, and no others."""
        wanted = dict.fromkeys(parts)
        for part in self._got.keys() - wanted.keys():
            self._renderings.leave(part, self)
            del self._got[part]
            self._new.pop(part, None)
        for part in wanted:
            if part not in self._got:
                self._got[part] = ""
                self._renderings.join(part, self)

    async def wait(self, seconds: float) -> None:
        """Until a part is new, but no longer than `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def wake(self) -> None:
        """End `wait`: there is something to look at."""
        self._changed.set()

    def take(self) -> str:
        """Return the content of the parts that differ from what was taken of them before."""
        self._changed.clear()
        text = "".join(self._new.values())
        self._got |= self._new
        self._new.clear()
        return text

    def offer(self, part: LivePart, html: str) -> None:
        """Note the new content of a part. `Renderings` calls it."""
        if html == self._got[part]:
            self._new.pop(part, None)
        else:
            self._new[part] = html
            self._changed.set()

    def end(self) -> None:
        """End the viewer once a part is gone. `Renderings` calls it."""
        self.has_ended = True
        self._changed.set()


@dataclass(slots=True)
class _Shared:
    """What is kept of a part that is seen: its viewers, and the task that renders it."""

    viewers: set[Viewer] = field(default_factory=set)
    task: asyncio.Task[None] | None = None
    has_ended: bool = False


class Renderings:
    """Renders the live parts of pages, each once for all who see the same. One instance per process.

    The tasks of one event loop use it. Mutable state: the parts that are seen, and the tasks that render them or
    are being cancelled.
    """

    def __init__(self, clock: Clock, *, longest_hold_seconds: float = _LONGEST_HOLD_SECONDS) -> None:
        self._clock = clock
        self._queue = FairQueue(_MOST_AT_ONCE, longest_hold_seconds=longest_hold_seconds)
        self._seen: dict[LivePart, _Shared] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Renderings {len(self._seen)} parts seen, {len(self._tasks)} tasks>"

    @contextmanager
    def viewer(self) -> Iterator[Viewer]:
        """Make a viewer, which follows no part after the block."""
        viewer = Viewer(self)
        try:
            yield viewer
        finally:
            viewer.follow(())

    def join(self, part: LivePart, viewer: Viewer) -> None:
        """Show a part to a viewer; the first one starts its rendering."""
        shared = self._seen.get(part)
        if shared is None:
            shared = self._seen[part] = _Shared()
            # In a context of its own: the part is nobody's in particular.
            task = asyncio.create_task(self._keep_rendering(part, shared), name="live part", context=Context())
            shared.task = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        shared.viewers.add(viewer)
        if shared.has_ended:
            viewer.end()

    def leave(self, part: LivePart, viewer: Viewer) -> None:
        """Show a part to a viewer no longer; after the last one its rendering ends."""
        shared = self._seen[part]
        shared.viewers.discard(viewer)
        if not shared.viewers:
            del self._seen[part]
            if shared.task is not None:
                shared.task.cancel()

    async def _keep_rendering(self, part: LivePart, shared: _Shared) -> None:
        try:
            await asyncio.sleep(part.after)
            while True:
                took = await self._render(part, shared)
                await asyncio.sleep(max(part.every, _PAUSE_FACTOR * took))
        except (web.HTTPNotFound, Refused):  # what the part shows is gone
            pass
        except Exception:  # noqa: BLE001 - the root of a task
            _log.error("live part failed", part=part.render.__qualname__, exc_info=True)
        shared.has_ended = True
        for viewer in shared.viewers:
            viewer.end()

    async def _render(self, part: LivePart, shared: _Shared) -> float:
        """Render once, unless the database is away. Returns how many seconds it took."""
        async with self._queue.slot(part.tenant):
            begun_at = self._clock.monotonic()
            viewers, html = shared.viewers.copy(), None
            try:
                html = await part.render(*part.given)
            except DatabaseUnavailable:
                for viewer in viewers:
                    viewer.wake()
        if html is not None:
            for viewer in viewers & shared.viewers:  # not those who came or left meanwhile
                viewer.offer(part, html)
        return self._clock.monotonic() - begun_at
