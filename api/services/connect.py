"""Flows of the connect modal: what a person's requests do. Decides and stores; knows no HTTP.

The monitor does everything that needs no credentials (`monitor.connect`); writing into a zone happens here, in the
request that brings them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.errors import (
    FLOW_BUSY,
    FLOW_NOT_FOUND,
    FLOW_STATE,
    FORBIDDEN,
    PLAN_CHANGED,
    Refused,
    invalid_parameter,
    too_many_requests,
)
from api.schemas.connect import ApplyBody, ConnectBody, DomainBody, UndoBody
from api.services.sharing import SharingService
from common.clock import Clock
from common.connect.configuration import (
    ChosenDomain,
    Configuration,
    InvalidConfiguration,
    Surroundings,
    choose_domain,
    parse_configuration,
    resolve,
)
from common.connect.states import Move, NotPossible, State, after
from common.db import connect_flows
from common.db.applications import Application
from common.db.connect_flows import Changes, Flow, FlowChanged, TooManyOpen
from common.db.pool import Database
from common.settings import Settings

_MOST_TRIES = 3
_FULL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ConnectService:
    """One a process; every request brings its application."""

    database: Database
    settings: Settings
    sharing: SharingService
    clock: Clock

    async def create(self, application: Application, body: ConnectBody) -> Flow:
        """Raises: `Refused`."""
        config, job_id = dict(body.config), None
        if body.share is not None:
            share = await self.sharing.find(body.share)
            if share is None or share.application_id != application.id:
                raise Refused(invalid_parameter("share"), code="link_not_found", hint="no such link, or it has expired")
            config, job_id = config or dict(share.config or {"dnsRecords": share.records}), share.job_id
        configuration = _understood(parse_configuration, config)
        if configuration.power and not application.connect:
            raise Refused(
                FORBIDDEN,
                code="connect_subscription_required",
                hint="power through the modal needs a subscription to it: frontage app set ID --connect on",
            )
        chosen = self._chosen(application, configuration, body)
        try:
            async with self.database.transaction() as connection:
                flow = await connect_flows.create(
                    connection,
                    application_id=application.id,
                    config=configuration.stored,
                    warnings=configuration.warnings,
                    user_id=configuration.user_id,
                    job_id=job_id,
                )
                if chosen is None:
                    return flow
                return await connect_flows.move(connection, flow, **chosen)
        except TooManyOpen as error:
            raise too_many_requests(_FULL_SECONDS, "too many flows of this application are open") from error

    async def find(self, application: Application, flow_id: str) -> Flow:
        """Raises: `Refused`."""
        async with self.database.connection() as connection:
            flow = await connect_flows.find(connection, flow_id, application.id)
        if flow is None:
            raise Refused(FLOW_NOT_FOUND, code="flow_not_found")
        return flow

    async def choose(self, flow: Flow, application: Application, body: DomainBody) -> Flow:
        """Raises: `Refused`."""
        _refuse_written(flow)
        configuration = _understood(parse_configuration, dict(flow.config))
        changes = self._changes_of(application, configuration, body.domain, body.subdomain)
        return await self._move(flow, Move.CHOOSE, lambda _: changes)

    async def look(self, flow: Flow) -> Flow:
        """Look at the zone again, for a new plan."""
        return await self._move(flow, Move.LOOK, lambda _: {"error": None, "due_at": self.clock.now()})

    async def apply(self, flow: Flow, application: Application, body: ApplyBody) -> Flow:
        """Raises: `Refused`."""
        if flow.plan is None or flow.plan["digest"] != body.digest:
            raise Refused(
                PLAN_CHANGED, code="plan_changed", hint="this is not the plan that was shown: read the flow again"
            )
        if body.way != "manual":
            raise Refused(FLOW_STATE, code="way_not_open", hint="this way is not open to the domain")
        return await self._move(
            flow,
            Move.HAND_OVER,
            lambda _: {"way": body.way, "since": self.clock.now(), "looks": 0, "due_at": self.clock.now()},
        )

    async def check(self, flow: Flow) -> Flow:
        """Look for the records at once. A person who waits may ask as often as the rate limits let them."""
        if flow.state is State.FINISHED:
            return flow
        return await self._move(flow, Move.LOOK_AGAIN, lambda _: {"due_at": self.clock.now()})

    async def undo(self, flow: Flow, body: UndoBody) -> Flow:
        """Raises: `Refused`."""
        raise Refused(FLOW_STATE, code="nothing_written", hint="the flow has written nothing")

    async def close(self, flow: Flow) -> Flow:
        """The person has closed the modal: what was begun in the zone goes on, what was not is given up."""
        if flow.state not in (State.CHOOSING, State.CHECKING, State.UNCHECKED, State.PLANNED):
            return flow
        return await self._move(flow, Move.CLOSE, lambda _: {"due_at": None})

    async def _move(self, flow: Flow, move: Move, changes: Callable[[Flow], Changes]) -> Flow:
        """Raises: `Refused`."""
        for _ in range(_MOST_TRIES):
            try:
                state = after(flow.state, move)
            except NotPossible as error:
                raise Refused(FLOW_STATE, code=f"flow_{flow.state}", hint=str(error)) from error
            try:
                async with self.database.transaction() as connection:
                    return await connect_flows.move(connection, flow, **(changes(flow) | {"state": state}))
            except FlowChanged:
                async with self.database.connection() as connection:
                    flow = await connect_flows.find(connection, flow.id, flow.application_id) or flow
        raise Refused(FLOW_BUSY, code="flow_busy", hint="the flow is changing: read it again")

    def _chosen(self, application: Application, configuration: Configuration, body: ConnectBody) -> Changes | None:
        text = body.domain or configuration.prefilled_domain
        if text is None:
            return None
        return self._changes_of(application, configuration, text, body.subdomain) | {"state": State.CHECKING}

    def _changes_of(
        self, application: Application, configuration: Configuration, text: str, subdomain: str | None
    ) -> Changes:
        chosen: ChosenDomain = _understood(lambda: choose_domain(configuration, text, subdomain))
        requested = _understood(lambda: resolve(configuration, chosen, self._around(application)))
        return {
            "domain": chosen.domain,
            "subdomain": chosen.subdomain,
            "requested": [each.as_json() for each in requested],
            "looked": None,
            "plan": None,
            "statuses": [],
            "error": None,
            "due_at": self.clock.now(),
        }

    def _around(self, application: Application) -> Surroundings:
        return Surroundings(
            application.cname_target,
            application.secure_cname_target or application.cname_target,
            tuple(map(str, self.settings.service_servers)),
        )


def _refuse_written(flow: Flow) -> None:
    if flow.journal:
        raise Refused(
            FLOW_STATE, code="flow_has_written", hint=f"it has written into the zone of {flow.domain}: undo that first"
        )


def _understood(parse: Callable[..., Any], *given: Any) -> Any:
    """Raises: `Refused`, naming the key and what was expected."""
    try:
        return parse(*given)
    except InvalidConfiguration as error:
        raise Refused(invalid_parameter(error.key), code=error.code, hint=f"expected {error}") from error
