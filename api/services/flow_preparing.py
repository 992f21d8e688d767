"""Preparing a flow's domain before its records change, so that a site that is up stays up while it moves.

Rules
    offered where the plan takes away what leads visitors to a name that the flow enrols, or the name is a wildcard,
        which needs the delegation anyway; and the name can be prepared
    what the flow would be refused at its end is refused here too (`common.connect.rights`)
    a name that is prepared already stays as it is; and for a browser one that is enrolled, though its DNS has left: a
        browser changes no settings that a server gave
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.errors import FLOW_STATE, Refused
from api.services.preparations import PreparationService, PreparedDomain
from common.connect.flow_enrolments import products_of
from common.connect.rights import is_own_enrolment
from common.db.applications import Application
from common.db.connect_flows import Flow
from common.enrolment.request import EnrolmentRequest
from common.errors import InvalidName
from common.flow_states import State
from common.names import parse_enrollable

_LEADS_VISITORS = frozenset({"A", "AAAA", "CNAME"})


@dataclass(frozen=True, slots=True)
class FlowPreparation:
    """How far a flow's names are prepared; none is before a person has asked for it.

    `is_offered`: they may ask. `is_needed`: a name is a wildcard, which is enrolled with the delegation alone.
    """

    is_offered: bool
    is_needed: bool
    domains: tuple[PreparedDomain, ...]


@dataclass(frozen=True, slots=True)
class FlowPreparing:
    """Prepares the names of flows. One instance per process; each call takes the flow's application."""

    preparations: PreparationService

    async def find(self, application: Application, flow: Flow) -> FlowPreparation:
        """Return how far the flow's names are prepared, and have a monitor look at their DNS."""
        requests = self._requests(application, flow)
        found = [
            await self.preparations.find(application, each.name)
            for each in requests
            if await self.preparations.has(application, each.name)
        ]
        is_needed = any(each.name.is_wildcard for each in requests)
        return FlowPreparation(await self._is_offered(application, flow, requests), is_needed, tuple(found))

    async def prepare(self, application: Application, flow: Flow) -> FlowPreparation:
        """Prepare the flow's names, unless they are. Raises: `Refused`."""
        requests = self._requests(application, flow)
        if not await self._is_offered(application, flow, requests):
            raise _not_preparable()
        for each in requests:
            if await self.preparations.has(application, each.name):
                continue
            is_stored = await self.preparations.prepare_new(application, each, keeps_enrolled=flow.by_browser)
            if not (is_stored or await self.preparations.has(application, each.name)):
                raise _not_preparable()
        return await self.find(application, flow)

    def _requests(self, application: Application, flow: Flow) -> list[EnrolmentRequest]:
        """Return what the flow would enrol at its end, one for each name: Power where a name has both products."""
        if flow.domain is None:
            return []
        found: dict[str, EnrolmentRequest] = {}
        for each in sorted(products_of(flow), key=lambda each: each.product):
            if not flow.vouched and not is_own_enrolment(each, application, flow.host):
                return []
            try:
                found.setdefault(each.name, EnrolmentRequest(each.product, parse_enrollable(each.name), each.settings))
            except InvalidName:
                return []
        return [*found.values()]

    async def _is_offered(self, application: Application, flow: Flow, requests: Sequence[EnrolmentRequest]) -> bool:
        replaced = {
            each.name
            for each in (() if flow.plan is None else flow.plan.changes)
            if each.type in _LEADS_VISITORS and set(each.before) - set(each.after)
        }
        are_wanted = (each.name.is_wildcard or each.name.text in replaced for each in requests)
        if flow.state is not State.PLANNED or not any(are_wanted):
            return False
        for each in requests:
            if await self.preparations.has(application, each.name):
                continue
            if flow.by_browser and await self.preparations.is_enrolled(application, each.name):
                return False
            try:
                await self.preparations.check(application, each)
            except Refused:
                return False
        return True


def _not_preparable() -> Refused:
    hint = "what visitors are led by stays as it is, or the name cannot be prepared: go on with the plan"
    return Refused(FLOW_STATE, code="not_preparable", hint=hint)
