"""Who connects a domain right now, how far each has come, and where people give up."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web
from multidict import MultiDict

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.context import DashboardContext
from api.dashboard.flow_advice import advise
from api.errors import Refused
from api.schemas.flow_list import DEFAULT_DAYS, FlowsQuery, parse_flows_query
from common.db.connect_flow_list import STEPS, Funnel, StepCount
from common.flows.plan import Change

_LISTED = 50
_DAYS = (1, 7, 30)
_FILTERS = ("domain", "userId", "step", "open")


class ConnectingPages:
    """The page of an application's flows. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """List the flows, newest first, beneath the funnel of a time."""
        application = await find_application(self._context, request)
        wanted = {name: request.query.get(name, "").strip() for name in _FILTERS}
        days = next((each for each in _DAYS if str(each) == request.query.get("days")), DEFAULT_DAYS)
        query, problem = _read(wanted, request.query.get("after"))
        flows = self._context.flow_list
        part = await flows.list_part(application, query.which, after=query.after, limit=_LISTED)
        url = request.path
        following = wanted | {"days": str(days), "after": part.next}
        funnel = await flows.read_funnel(application, days)
        return self._view.page(
            request,
            "connecting.html",
            application,
            flows=part.flows,
            funnel=funnel,
            lost=_find_lost(funnel),
            steps=STEPS,
            days=days,
            choices=_DAYS,
            wanted=wanted,
            problem=problem,
            url=url,
            next_url=f"{url}?{urlencode(following)}" if part.next else "",
            first_url="" if query.after is None else f"{url}?{urlencode(wanted | {'days': days})}",
        )

    async def get_flow(self, request: web.Request) -> web.StreamResponse:
        """Show one flow: what stands at the customer's DNS, and what to tell the customer."""
        application = await find_application(self._context, request)
        found = await self._context.flow_list.find(application, request.match_info["flow"])
        if found is None:
            raise web.HTTPNotFound
        listed, flow = found
        return self._view.page(
            request,
            "connecting_flow.html",
            application,
            listed=listed,
            flow=flow,
            advice=advise(flow.state, flow.way, flow.error),
            to_delete=[] if flow.plan is None else [each for each in flow.plan.to_write if _goes(each)],
        )


def _goes(change: Change) -> bool:
    """Return whether records of the set have to be deleted."""
    return bool(set(change.before) - set(change.after))


def _read(wanted: dict[str, str], after: str | None) -> tuple[FlowsQuery, str]:
    """Return the query as the API reads it, or that of all with the reason why it cannot be read."""
    given = {name: text for name, text in {**wanted, "after": after}.items() if text}
    try:
        return parse_flows_query(MultiDict(given)), ""
    except Refused as error:
        return parse_flows_query(MultiDict()), error.hint or error.refusal.message


def _find_lost(funnel: Funnel) -> StepCount | None:
    """Return the step at which most people gave up; None where none did."""
    lost = max(funnel.steps, key=lambda each: each.stopped)
    return lost if lost.stopped else None
