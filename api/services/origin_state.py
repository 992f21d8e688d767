"""Origins as visitors meet them: asked the way an edge asks (`common.origin_probe`), for answers and diagnoses.

Questions are bounded and shared fairly between applications. Domains of one application that lead to one origin share
an answer, whatever the path, since any HTTP response will do: an origin that answered is not asked again for
`GOOD_SECONDS`, one that did not for `BAD_SECONDS`. A redirect is said of the URL that was asked, and of no other.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from api.notices import Notice
from common.clock import Clock
from common.db.applications import Application
from common.enrolment.origins import LONGEST_SECONDS, Unreachable
from common.fair_queue import FairQueue, TooManyWaiting
from common.logs import get_logger
from common.names import parse_host_name
from common.origin_faults import OriginFault, OriginIdentity
from common.origin_probe import OriginProbe, RootRedirect
from common.urls import ApplicationUrl, parse_application_url

_log = get_logger("api.services.origin_state")

GOOD_SECONDS = 10.0
BAD_SECONDS = 2.0
"""Short: the reader of a diagnosis mends the origin and asks again."""
_AT_ONCE = 32
_MOST_WAITING = 32
_MOST_REMEMBERED = 4096
_LONGEST_WAIT_SECONDS = 2.0

Status: TypeAlias = Literal["ok", "unreachable", "unknown"]


@dataclass(frozen=True, slots=True)
class OriginState:
    """`words` continue a sentence about the origin: ``it refuses connections``. There are none where it is ok."""

    url: str
    status: Status
    fault: OriginFault | None = None
    words: str = ""
    redirect: RootRedirect | None = None

    def at(self, url: str) -> OriginState:
        """Return the state of the same origin at another path."""
        return self if url == self.url else replace(self, url=url, redirect=None)

    @property
    def notice(self) -> Notice | None:
        """Return the notice beside the message of a change that leads to this origin."""
        if self.redirect is not None:
            return _notice_of(self.url, self.redirect)
        if self.status != "unreachable":
            return None
        words = f"The origin {self.url} does not serve visitors now: {self.words}."
        return Notice(f"origin_{self.fault}", words)


def _notice_of(url: str, redirect: RootRedirect) -> Notice:
    if redirect.comes_back:
        words = f"The origin redirects {url} to {redirect.to} and back: visitors do not get beyond the first page."
        return Notice("origin_redirect_loop", words)
    words = f"The origin redirects {url} to {redirect.to}: edges ask for that themselves, once they have seen it."
    return Notice("origin_redirect", f"{words} With {redirect.to} as the applicationUrl they ask for it at once.")


class _Key(NamedTuple):
    """What decides how an origin answers, apart from the path."""

    application_id: str
    origin: tuple[str, str, int]
    host: str
    server_name: str | None
    verify: bool


class OriginStates:
    """The states of origins. One instance per process; the application's composition creates and closes it.

    Mutable state: the answers remembered, oldest first, and the questions under way, both by what was asked.
    """

    def __init__(self, probe: OriginProbe, clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._queue = FairQueue(_AT_ONCE, most_waiting_per_tenant=_MOST_WAITING)
        self._known: OrderedDict[_Key, tuple[float, OriginState]] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[OriginState]] = {}

    async def find(
        self, application: Application, domain: str, text: str, *, within_seconds: float = LONGEST_SECONDS + 1
    ) -> OriginState:
        """Return the state of the origin at the URL `text`, asked for `domain`.

        It is `unreachable` with the fault ``timeout`` if it does not answer within `within_seconds`.
        """
        key = _key(application, domain, parse_application_url(text))
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() < known[0]:
            return known[1].at(text)
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, application, domain, text), name="origin")
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        done, _ = await asyncio.wait({task}, timeout=within_seconds)
        if not done:
            words = f"it has not answered within {within_seconds:g} seconds"
            return OriginState(text, "unreachable", "timeout", words)
        return task.result().at(text)

    async def close(self) -> None:
        """Drop the questions under way."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, key: _Key, application: Application, domain: str, text: str) -> OriginState:
        try:
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS) as waiting, self._queue.slot(application.id):
                waiting.reschedule(None)  # the probe bounds itself
                redirect = await self._probe(text, domain, application)
        except (TooManyWaiting, TimeoutError):
            return OriginState(text, "unknown", words="too many origins are being asked")
        except Unreachable as error:
            state = OriginState(text, "unreachable", error.fault, str(error))
        except Exception:  # noqa: BLE001 - the task's root: those who wait learn that it is unknown
            _log.exception("an origin could not be asked")
            return OriginState(text, "unknown", words="it could not be asked")
        else:
            state = OriginState(text, "ok", redirect=redirect)
        self._remember(key, state)
        return state

    def _remember(self, key: _Key, state: OriginState) -> None:
        seconds = GOOD_SECONDS if state.status == "ok" else BAD_SECONDS
        self._known[key] = self._clock.monotonic() + seconds, state
        self._known.move_to_end(key)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)


def identity_of(application: Application, text: str) -> OriginIdentity:
    """Return the origin at the URL `text`, as edges tell it apart from others.

    Raises: `InvalidUrl`, `InvalidName`.
    """
    url = parse_application_url(text)
    name = application.origin_server_name
    server_name = parse_host_name(name) if name else url.host
    return OriginIdentity(url.scheme, url.host, url.port, server_name, application.origin_verify)


def _key(application: Application, domain: str, url: ApplicationUrl) -> _Key:
    return _Key(
        application.id,
        (url.scheme, url.host, url.port),
        domain if application.send_host == "customer" else "",
        application.origin_server_name,
        application.origin_verify,
    )
