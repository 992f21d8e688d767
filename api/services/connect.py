"""Flows of the connect modal: what a person's requests do. Decides and stores; knows no HTTP.

The monitor does everything that needs no credentials (`monitor.connect`); writing into a zone happens here, in the
request that brings them.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from api.access import Access
from api.connect.dynamic_update import DynamicUpdate
from api.connect.provider_api import ProviderApis
from api.connect.returning import Returned
from api.connect.signing import apply_url
from api.errors import (
    FLOW_BUSY,
    FLOW_NOT_FOUND,
    FLOW_STATE,
    FORBIDDEN,
    NOT_FOUND,
    PLAN_CHANGED,
    ZONE_CHANGED,
    ZONE_UNKNOWN,
    Refused,
    invalid_parameter,
    too_many_requests,
)
from api.schemas.connect import ApplyBody, ConnectBody, DomainBody, UndoBody
from api.services.credentials import refuse_ended_key
from api.services.flow_domains import changes_of_domain, understood
from api.services.flow_moves import MOST_TRIES, busy, move_flow, possible_state
from api.services.flow_sources import FlowSource, FlowSources, refuse_beyond_rights
from common.clock import Clock
from common.connect import flow_events
from common.connect.configuration import Configuration, parse_configuration
from common.connect.domain_connect.offer import Offer
from common.connect.plan import believe_zone, is_changed_since, journal_of, plan_undo
from common.connect.settlement import LEASE_SECONDS, Settlement, keep_lease
from common.connect.ways.problems import WayFailed
from common.connect.zone_inspection import READ_BACK_SECONDS, CouldNotInspect, ZoneInspection, as_wanted
from common.connect.zone_inspector import ZoneInspector
from common.db import connect_configurations, connect_flows, domain_connect_keys, domains, flow_ends, shares
from common.db.applications import Application
from common.db.connect_flows import Changes, Flow, FlowChanged, TooManyOpen
from common.db.domains import CertificateState
from common.db.pool import Connection, Database
from common.errors import FenceLost
from common.flow_states import Move, State, next_state
from common.flows.enrolments import ProductEnrolment, pending_again
from common.flows.handover import Handover
from common.flows.plan import IN_ZONE, Change, JournalEntry, Plan
from common.flows.ways import ProviderApiWay, Way, WayName
from common.secrets import Keyring
from common.settings import Settings

_FULL_SECONDS = 60.0
_STATE_BYTES = 24

Write = Callable[[Sequence[Change]], Awaitable[None]]
"""Writes changes into a zone. Raises: `WayFailed`."""


class ZoneChanged(Refused):
    """The zone has changed since the plan was made: nothing is written, and `flow` has the new plan."""

    def __init__(self, flow: Flow) -> None:
        hint = (
            "the zone has changed since the plan was made, so nothing was written: look at the new plan, and apply that"
        )
        super().__init__(ZONE_CHANGED, hint=hint)
        self.flow = flow


class WrittenChanged(Refused):
    """Others have changed what the flow wrote: `changed`, as it was written, and the `plan` of an undo now."""

    def __init__(self, changed: Sequence[Change], plan: Plan) -> None:
        hint = "others have changed what the flow wrote: look at the plan of an undo, and agree by its digest"
        super().__init__(ZONE_CHANGED, code="written_changed", hint=hint)
        self.changed = changed
        self.plan = plan


@dataclass(frozen=True, slots=True)
class ConnectService:
    """Flows of the connect modal. One instance per process; each call takes the caller's access."""

    database: Database
    keyring: Keyring
    settings: Settings
    sources: FlowSources
    clock: Clock
    inspector: ZoneInspector
    settlement: Settlement
    dynamic_update: DynamicUpdate
    provider_apis: ProviderApis

    async def create(self, access: Access, body: ConnectBody) -> Flow:
        """Begin a flow. Raises: `Refused`.

        A token with a domain or a user makes flows of theirs.
        """
        application = access.application
        source = await self.sources.find(access, body)
        configuration = understood(parse_configuration, source.config)
        refuse_beyond_rights(access, source, configuration)
        if configuration.power and not application.connect:
            raise Refused(
                FORBIDDEN,
                code="connect_subscription_required",
                hint="power through the modal needs a subscription to it: frontage app set ID --connect on",
            )
        chosen: Changes | None = None
        if (text := body.domain or configuration.prefilled_domain or access.domain) is not None:
            chosen = self._choose(access, configuration, text, body.subdomain, source.rights.share_id)
            chosen |= {"state": State.CHECKING}
        try:
            async with self.database.transaction() as connection:
                if (made := await connect_flows.find_earlier(connection, application.id)) is not None:
                    return made
                await self._hold_source(connection, application, source)
                flow = await connect_flows.create(
                    connection,
                    application_id=application.id,
                    config=configuration.stored,
                    warnings=configuration.warnings,
                    user_id=access.user_id or source.user_id or configuration.user_id,
                    job_id=source.job_id,
                    rights=source.rights,
                )
                if chosen is None:
                    return flow
                return await connect_flows.move(connection, flow, **chosen)
        except TooManyOpen as error:
            raise too_many_requests(_FULL_SECONDS, "too many flows of this application are open") from error

    async def _hold_source(self, connection: Connection, application: Application, source: FlowSource) -> None:
        """Keep the key, the link and the configuration from being taken back while the flow is made: then they end it.

        Raises: `Refused`.
        """
        await refuse_ended_key(connection, source.rights.by_key)
        share_id, configuration_id = source.rights.share_id, source.rights.configuration_id
        if share_id is not None and not await shares.lock_living(connection, application.id, share_id):
            raise Refused(
                invalid_parameter("share"),
                code="link_not_found",
                hint="no such link, or it has expired: ask for a new one",
            )
        if configuration_id is not None and not await connect_configurations.lock_living(
            connection, application.id, configuration_id
        ):
            raise Refused(
                NOT_FOUND,
                code="configuration_not_found",
                hint="the configuration was removed: register it again (POST /connect/configurations)",
            )

    async def find(self, application: Application, flow_id: str) -> Flow:
        """Return a flow of the application. Raises: `Refused`."""
        async with self.database.connection() as connection:
            flow = await connect_flows.find(connection, flow_id, application.id)
        if flow is None:
            raise Refused(FLOW_NOT_FOUND)
        return flow

    async def refuse_ended(self, flow: Flow) -> None:
        """Refuse a flow whose link, configuration or secret was taken back. Raises: `Refused`."""
        async with self.database.connection() as connection:
            end = await flow_ends.find_end(connection, flow.id)
        if end is not None:
            raise Refused(FLOW_STATE, code=end, hint=flow_ends.ENDS[end])

    async def certificates(self, flow: Flow) -> dict[str, CertificateState]:
        """Of the names that the flow has enrolled."""
        names = [each.name for each in flow.enrolments if isinstance(each, ProductEnrolment)]
        if not names:
            return {}
        async with self.database.connection() as connection:
            return await domains.certificate_states(connection, names, flow.application_id)

    async def choose(self, flow: Flow, access: Access, body: DomainBody) -> Flow:
        """Choose the domain of a flow. Raises: `Refused`."""
        _refuse_written(flow)
        configuration = understood(parse_configuration, dict(flow.config))
        changes = self._choose(access, configuration, body.domain, body.subdomain, flow.share_id)
        if access.is_browsers:
            changes["by_browser"] = True
        return await self._move(flow, Move.CHOOSE, lambda _: changes)

    def _choose(
        self, access: Access, configuration: Configuration, text: str, subdomain: str | None, share_id: str | None
    ) -> Changes:
        return changes_of_domain(self.settings, access, configuration, text, subdomain, share_id, self.clock.now())

    async def look(self, flow: Flow) -> Flow:
        """Look at the zone again, for a new plan."""
        now = self.clock.now()
        return await self._move(flow, Move.INSPECT, lambda _: {"error": None, "handover": None, "due_at": now})

    async def apply(self, flow: Flow, body: ApplyBody) -> Flow:
        """Write exactly the plan that was shown, or nothing. Raises: `Refused`."""
        possible_state(flow, Move.APPLY)
        if flow.plan is None or flow.plan.digest != body.digest:
            raise Refused(
                PLAN_CHANGED,
                hint="the flow has another plan by now: read the flow again, and apply that plan",
            )
        if not any(way.way == body.way for way in _ways(flow)):
            raise Refused(FLOW_STATE, hint="this way is not open to the domain: use one of the flow's ways")
        if body.way == "manual" or not flow.plan.to_write:
            return await self._wait(flow, body.way, None)
        if flow.plan.blocked:
            raise Refused(FLOW_STATE, code="plan_blocked", hint=flow.plan.blocked[0])
        found = await self._same_plan(flow, body.digest)
        if body.way == "domain_connect":
            return await self._hand_over(flow, found)
        plan = found.plan
        journal = journal_of(plan, flow.journal)
        write = self._writer(flow, body.way, body.credentials)
        return await self._write(flow, Move.APPLY, body.way, journal, plan, write)

    async def _same_plan(self, flow: Flow, digest: str) -> ZoneInspection:
        """Return the zone as it is now, if its plan is the one shown. Raises: `Refused`.

        A `ZoneChanged` has the flow with its new plan.
        """
        try:
            found = await self.inspector.inspect(flow)
        except CouldNotInspect as error:
            raise Refused(ZONE_UNKNOWN, code=error.code, hint=f"{error} Nothing is written.") from error
        if found.plan.digest == digest:
            return found
        changes: Changes = {
            "looked": found.found(),
            "plan": found.plan,
            "requested": found.requested,
        }
        replanned = await self._move(flow, Move.INSPECT, lambda _: changes, to=State.PLANNED)
        raise ZoneChanged(replanned)

    async def _hand_over(self, flow: Flow, found: ZoneInspection) -> Flow:
        """Hand the flow over to the provider's consent page.

        Raises: `Refused` where the provider does not offer it any more.
        """
        provider_id, offer = self.settings.domain_connect_provider_id, found.offers.domain_connect
        async with self.database.connection() as connection:
            key = await domain_connect_keys.find_signing(connection)
        if not isinstance(offer, Offer) or provider_id is None or key is None:
            hint = (
                "this installation is not set up for Domain Connect: use another way"
                if offer is None
                else "the provider does not offer it now: use another way"
            )
            raise Refused(FLOW_STATE, hint=hint)
        state = secrets.token_urlsafe(_STATE_BYTES)
        url = apply_url(
            offer.settings,
            provider_id,
            offer.filled,
            flow.domain or "",
            redirect_uri=f"{self.settings.base_url}/connect/return/{flow.id}",
            state=state,
            key_label=key.label,
            private_key=self.keyring.open(key.private_key, domain_connect_keys.key_identity(key.label)),
        )
        return await self._wait(flow, "domain_connect", Handover(url, state))

    async def take_return(self, flow_id: str, state: str, returned: Returned) -> bool:
        """Note with what a browser comes back from the provider's page; look for the records at once.

        Return false, and change nothing, unless `state` is the flow's, and has not been used yet.
        """
        async with self.database.connection() as connection:
            flow = await connect_flows.find_any(connection, flow_id)
            if flow is None or await flow_ends.find_end(connection, flow.id) is not None:
                return False
        for _ in range(MOST_TRIES):
            if flow is None or flow.handover is None or not _is_expected(flow.handover, state):
                return False
            changes: Changes = {"handover": _returned(flow.handover, returned)}
            if flow.state in (State.WAITING, State.PROPAGATING):  # else the DNS was faster than the person
                changes |= {"looks": 0, "due_at": self.clock.now()}
            try:
                async with self.database.transaction() as connection:
                    moved = await connect_flows.move(connection, flow, **changes)
                    if returned.outcome == "done":
                        await flow_events.complete(connection, moved, self.clock.now())
                return True
            except FlowChanged:
                async with self.database.connection() as connection:
                    flow = await connect_flows.find_any(connection, flow_id)
        raise Refused(FLOW_BUSY, hint="the flow is changing: load the page again")

    async def _wait(self, flow: Flow, way: WayName, handover: Handover | None) -> Flow:
        """Look for the records at once, then ever later: the person, or the provider, makes the change."""
        now = self.clock.now()
        changes: Changes = {"way": way, "handover": handover, "since": now, "looks": 0, "due_at": now, "error": None}
        return await self._move(flow, Move.HAND_OVER, lambda _: changes, completed=handover is None)

    def _writer(self, flow: Flow, way: WayName, credentials: Mapping[str, str] | None) -> Write:
        """Return what writes by this way. Raises: `Refused` for a way that writes nothing."""
        apex, given = flow.domain or "", credentials or {}
        if way == "dynamic_update":
            server = None if flow.looked is None else flow.looked.server
            return lambda changes: self.dynamic_update.write(apex, changes, given, server)
        if way == "provider_api":
            api = next((each.api for each in _ways(flow) if isinstance(each, ProviderApiWay)), "")
            return lambda changes: self.provider_apis.write(api, apex, changes, given, tenant=flow.application_id)
        raise Refused(
            FLOW_STATE,
            hint="nothing can be written from here this way: name another way, with its credentials",
        )

    async def _write(
        self,
        flow: Flow,
        move: Move,
        way: WayName,
        journal: tuple[JournalEntry, ...],
        plan: Plan,
        write: Write,
    ) -> Flow:
        """Note what is about to be written, write it, read it back, and note what is there.

        After a crash in between, a monitor reads it back.
        """
        held = await self._begin(flow, move, way, journal)
        problem: WayFailed | None = None
        async with keep_lease(self.database, held):
            try:
                if plan.to_write:
                    await write(plan.to_write)
            except WayFailed as error:
                problem = error
            seconds = 0.0 if problem is not None else READ_BACK_SECONDS
            wanted = as_wanted(plan.changes)
            now = await self.inspector.read_back(held, wanted, within_seconds=seconds)
            others = [each.change.key for each in _tried(journal) if each.change.key not in wanted]
            if others:
                now = {**await self.inspector.read_sets(held, others), **now}
            try:
                return await self.settlement.settle(held, now, problem)
            except FenceLost as error:  # this process stood still for so long that a monitor has settled the flow
                raise busy() from error

    async def _begin(self, flow: Flow, move: Move, way: WayName, journal: tuple[JournalEntry, ...]) -> Flow:
        try:
            async with self.database.transaction() as connection:
                return await connect_flows.begin(
                    connection,
                    flow,
                    lease_seconds=LEASE_SECONDS,
                    state=next_state(flow.state, move),
                    way=way,
                    journal=journal,
                    error=None,
                )
        except FlowChanged as error:
            raise busy() from error

    async def undo(self, flow: Flow, body: UndoBody) -> Flow:
        """Put back what was there, and take away what was added; what others have changed since is left alone.

        Raises: `Refused`, with what was changed since, until the person agrees to it by its digest.
        """
        possible_state(flow, Move.UNDO)
        tried = _tried(flow.journal)
        now = await self.inspector.read_sets(flow, [entry.change.key for entry in tried])
        if len(now) < len(tried):
            raise Refused(
                ZONE_UNKNOWN,
                hint="the domain's name servers gave no certain answer: try again in a moment",
            )
        journal = tuple(entry if entry.status == "taken_back" else believe_zone(entry, now) for entry in flow.journal)
        in_zone = [entry for entry in journal if entry.status in IN_ZONE]
        if not in_zone:
            raise Refused(
                FLOW_STATE,
                code="nothing_written",
                hint="nothing that the flow wrote is in the zone: there is nothing to undo",
            )
        plan = plan_undo(in_zone, now)
        changed = [entry.change for entry in in_zone if entry.status == "written" and is_changed_since(entry, now)]
        if changed and body.digest != plan.digest:
            raise WrittenChanged(changed, plan)
        way = body.way or flow.way or "manual"
        write = self._writer(flow, way, body.credentials)
        return await self._write(flow, Move.UNDO, way, journal, plan, write)

    async def check(self, flow: Flow) -> Flow:
        """Look for the records at once; where they are live, try again what failed to be enrolled.

        A person who waits may ask as often as the rate limits let them.
        """
        if flow.state not in (State.ENROLLING, State.FINISHED):
            return await self._move(flow, Move.SEARCH_AGAIN, lambda _: {"due_at": self.clock.now()})
        if not any(each.status == "failed" for each in flow.enrolments):
            return flow
        return await self._move(flow, Move.ENROL_AGAIN, self._enrol_again)

    def _enrol_again(self, flow: Flow) -> Changes:
        return {"enrolments": list(map(pending_again, flow.enrolments)), "due_at": self.clock.now()}

    async def close(self, flow: Flow) -> Flow:
        """Close the flow of a person who has left: what was begun in the zone goes on."""
        if flow.state not in (State.CHOOSING, State.CHECKING, State.UNCHECKED, State.PLANNED):
            return flow
        return await self._move(flow, Move.CLOSE, lambda _: {"due_at": None})

    async def _move(
        self,
        flow: Flow,
        move: Move,
        changes: Callable[[Flow], Changes],
        *,
        to: State | None = None,
        completed: bool = False,
    ) -> Flow:
        return await move_flow(self.database, self.clock, flow, move, changes, to=to, completed=completed)


def _tried(journal: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return the entries that are in the zone, or may have come there late."""
    return [entry for entry in journal if entry.status != "taken_back"]


def _ways(flow: Flow) -> Sequence[Way]:
    """Return the ways that are open to the domain."""
    return () if flow.looked is None else flow.looked.ways or ()


def _returned(handover: Handover, returned: Returned) -> Handover:
    return Handover(handover.url, None, returned.outcome, returned.error, returned.description)


def _is_expected(handover: Handover, state: str) -> bool:
    expected = handover.state
    return expected is not None and hmac.compare_digest(expected.encode(), state.encode())


def _refuse_written(flow: Flow) -> None:
    if flow.journal:
        raise Refused(
            FLOW_STATE,
            code="flow_has_written",
            hint=f"the flow has written into the zone of {flow.domain}: undo that first",
        )
