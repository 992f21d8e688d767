"""A person at the modal: connects a name, and takes it back, until it is finished or undone.

Decides by the API's answers only. Each answer may be lost with the API; then the flow is read again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.connect_faults import zones
from bench.connect_faults.faults import Drawn
from bench.connect_faults.world import FlowWorld
from common.errors import FrontageError

_PAUSE_SECONDS = 0.05
_STILL_SECONDS = 90.0
"""A flow that another process has to move, and that does not move for so long, is stuck."""
_MOST_ACTIONS = 60
_OWN_MOVE = frozenset({"planned", "halted", "unchecked", "finished", "undone"})
"""States in which the person has the next move."""


class Stuck(FrontageError):
    """The flow does not come to its end."""


@dataclass(slots=True)
class Person:
    """A person who connects the name of one zone. `flow` is the API's last answer."""

    world: FlowWorld
    zone: str
    drawn: Drawn
    flow: dict[str, Any] = field(default_factory=dict)
    _actions: int = 0

    @property
    def host(self) -> str:
        """Return the name that is connected."""
        return f"shop.{self.zone}"

    async def connect(self) -> None:
        """Work through the modal until the flow is finished.

        Raises: `Stuck`.
        """
        await self._until_created()
        while (state := await self._until_own_move()) != "finished":
            if state == "planned":
                await self._apply()
            else:
                await self._act("plan")

    async def take_back(self) -> None:
        """Undo the flow until it is undone.

        Raises: `Stuck`.
        """
        if self.drawn.has_foreign_after:
            await self.world.change_zone(self.zone, "@", "after")
        digest = None
        while await self._until_own_move() != "undone":
            body = {"credentials": self._credentials()} | ({"digest": digest} if digest else {})
            answer = await self._act("undo", body)
            digest = answer["plan"]["digest"] if answer.get("code") == "written_changed" else None

    async def _apply(self) -> None:
        """Apply the plan; another party may change the zone before."""
        if self.drawn.has_foreign_before:
            self.drawn.has_foreign_before = False
            await self.world.change_zone(self.zone, "@", "before")
        digest = self.flow["plan"]["digest"]
        body = {"way": self.world.way, "digest": digest, "credentials": self._credentials()}
        answer = await self._act("apply", body)
        if answer.get("code") == "zone_changed":
            self.world.counts.done["plans made anew, the zone had changed"] += 1

    def _credentials(self) -> Mapping[str, str]:
        """Return the credentials, which are wrong once where that was drawn."""
        if self.drawn.has_wrong_token:
            self.drawn.has_wrong_token = False
            self.world.counts.done["wrong tokens"] += 1
            return self.world.wrong
        return self.world.credentials

    async def _until_created(self) -> None:
        """Create the flow, through lost answers."""
        while not self.flow:
            status, answer = await self._ask("POST", "/connect/flows", zones.config(self.host))
            if status == 201:
                self.flow = answer

    async def _until_own_move(self) -> str:
        """Return the state in which the person has the next move, also after a write of which nothing is in the zone.

        Raises: `Stuck`.
        """
        still_until, seen = time.monotonic() + _STILL_SECONDS, None
        while True:
            status, answer = await self._ask("GET", f"/connect/flows/{self.flow['id']}")
            if status == 200:
                self.flow = answer
            state = str(self.flow["state"])
            if state in self.drawn.killed_at:
                self.drawn.killed_at.discard(state)
                await self.world.kill_monitors(state)
            if status == 200 and state in _OWN_MOVE:
                return state
            if state != seen:
                still_until, seen = time.monotonic() + _STILL_SECONDS, state
            if time.monotonic() > still_until:
                raise Stuck(f"{self.host} stays {state}")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _act(self, action: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send an action of the flow, and return the answer.

        Raises: `Stuck` after too many actions.
        """
        self._actions += 1
        if self._actions > _MOST_ACTIONS:
            raise Stuck(f"{self.host} is {self.flow['state']} after {_MOST_ACTIONS} actions: {self.flow.get('error')}")
        _, answer = await self._ask("POST", f"/connect/flows/{self.flow['id']}/{action}", dict(body or {}))
        return answer

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Send a request, and return status and content; status 0 where the answer is lost."""
        try:
            return await self.world.partner.ask(method, path, body)
        except (aiohttp.ClientError, TimeoutError):
            await asyncio.sleep(_PAUSE_SECONDS)
            return 0, {}
