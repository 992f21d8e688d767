"""Handlers of ``/connect`` and ``/sharing``: they parse, call the service and respond."""

from __future__ import annotations

from datetime import UTC, datetime

from aiohttp import web
from multidict import MultiMapping

from api.answers import sharing as answers
from api.answers.connect import flow_answer, flow_preparation_answer
from api.answers.connect_plan import flow_plan, planned_set
from api.errors import FLOW_NOT_FOUND, Refused, invalid_parameter
from api.handlers.event_stream import stream_flow
from api.requests import ACCESS, application_of, read_body
from api.responses import respond, respond_message
from api.schemas.connect import (
    ApplyBody,
    ConfigurationBody,
    ConnectBody,
    DomainBody,
    EmptyBody,
    FlowShareBody,
    ShareBody,
    UndoBody,
)
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE, cursor_name, parse_integer, parse_optional_text
from api.services.configurations import ConfigurationService
from api.services.connect import ConnectService, WrittenChanged, ZoneChanged
from api.services.flow_preparing import FlowPreparing
from api.services.flow_watch import FlowWatch
from api.services.sharing import SharingService
from common.db.connect_flows import Flow
from common.db.shares import LIFETIME_DAYS


class ConnectHandlers:
    """Handlers of flows."""

    def __init__(self, service: ConnectService, watch: FlowWatch, preparing: FlowPreparing) -> None:
        self._service = service
        self._watch = watch
        self._preparing = preparing

    async def post(self, request: web.Request) -> web.Response:
        """Begin a flow."""
        body = await read_body(request, ConnectBody)
        return _answer(await self._service.create(request[ACCESS], body), 201)

    async def get(self, request: web.Request) -> web.Response:
        """Show a flow."""
        flow = await self._find(request)
        return respond(flow_answer(flow, await self._service.certificates(flow)))

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        """Send a flow as it changes."""
        flow = await self._find(request)
        with self._watch.watching(flow) as watcher:
            return await stream_flow(request, flow, watcher)

    async def choose(self, request: web.Request) -> web.Response:
        """Choose the domain."""
        body = await read_body(request, DomainBody)
        return _answer(await self._service.choose(await self._find(request), request[ACCESS], body))

    async def plan(self, request: web.Request) -> web.Response:
        """Read the zone again and make a plan."""
        await read_body(request, EmptyBody)
        return _answer(await self._service.look(await self._find(request)))

    async def apply(self, request: web.Request) -> web.Response:
        """Do what the plan shows."""
        body = await read_body(request, ApplyBody)
        flow = await self._find(request)
        try:
            return _answer(await self._service.apply(flow, body))
        except ZoneChanged as changed:
            details = {"flow": flow_answer(changed.flow)}
            raise Refused(changed.refusal, code=changed.code, hint=changed.hint, details=details) from changed

    async def get_preparation(self, request: web.Request) -> web.Response:
        """Show how far the flow's names are prepared."""
        found = await self._preparing.find(application_of(request), await self._find(request))
        return respond(flow_preparation_answer(found))

    async def prepare(self, request: web.Request) -> web.Response:
        """Prepare the flow's names."""
        await read_body(request, EmptyBody)
        found = await self._preparing.prepare(application_of(request), await self._find(request))
        return respond(flow_preparation_answer(found))

    async def check(self, request: web.Request) -> web.Response:
        """Look for the records now."""
        await read_body(request, EmptyBody)
        return _answer(await self._service.check(await self._find(request)))

    async def undo(self, request: web.Request) -> web.Response:
        """Put back what was replaced."""
        body = await read_body(request, UndoBody)
        flow = await self._find(request)
        try:
            return _answer(await self._service.undo(flow, body))
        except WrittenChanged as changed:
            details = {"changed": list(map(planned_set, changed.changed)), "plan": flow_plan(changed.plan)}
            raise Refused(changed.refusal, code=changed.code, hint=changed.hint, details=details) from changed

    async def close(self, request: web.Request) -> web.Response:
        """End a flow."""
        await read_body(request, EmptyBody)
        return _answer(await self._service.close(await self._find(request)))

    async def _find(self, request: web.Request) -> Flow:
        return await find_flow(self._service, request)


async def find_flow(service: ConnectService, request: web.Request) -> Flow:
    """Return the flow of the path, if the token opens it. Raises: `Refused`.

    A token with a domain, a user, a configuration or a sharing link opens only theirs, and none of a browser's a
    flow that was ended.
    """
    access = request[ACCESS]
    flow = await service.find(application_of(request), request.match_info["id"])
    if flow.domain is not None:
        request[ACCESS].refuse_other_domain(flow.domain)
    bounds = (
        (access.user_id, flow.user_id),
        (access.share_id, flow.share_id),
        (access.configuration_id, flow.configuration_id),
    )
    if any(bound is not None and bound != of_flow for bound, of_flow in bounds):
        raise Refused(FLOW_NOT_FOUND)
    if access.is_browsers:
        await service.refuse_ended(flow)
    return flow


class SharingHandlers:
    """Handlers of sharing links."""

    def __init__(self, sharing: SharingService, service: ConnectService, base_url: str) -> None:
        self._sharing = sharing
        self._service = service
        self._base_url = base_url

    async def post(self, request: web.Request) -> web.Response:
        """Make a link to a configuration."""
        body = await read_body(request, ShareBody)
        share = await self._sharing.share(request[ACCESS], body)
        return respond(answers.shared_link(share, self._base_url), 201)

    async def share_flow(self, request: web.Request) -> web.Response:
        """Make a link to a flow's configuration."""
        body = await read_body(request, FlowShareBody)
        flow = await find_flow(self._service, request)
        days = body.expires_in_days
        if request[ACCESS].scope is not None and days is not None and days > LIFETIME_DAYS:
            hint = f"a token with a scope makes links of at most {LIFETIME_DAYS} days"
            raise Refused(invalid_parameter("expiresInDays"), hint=hint)
        share = await self._sharing.share_flow(request[ACCESS], flow, days)
        return respond(answers.shared_link(share, self._base_url), 201)

    async def get(self, request: web.Request) -> web.Response:
        """List the links, newest first."""
        before, limit = _part(request.query)
        shares = await self._sharing.list_shares(application_of(request), before=before, limit=limit)
        return respond(answers.shared_links(shares, self._base_url, limit))

    async def delete(self, request: web.Request) -> web.Response:
        """Revoke a link."""
        await self._sharing.revoke(application_of(request), request.match_info["id"])
        return respond_message("Link revoked")


class ConfigurationHandlers:
    """Handlers of registered configurations."""

    def __init__(self, service: ConfigurationService) -> None:
        self._service = service

    async def post(self, request: web.Request) -> web.Response:
        """Register a configuration."""
        body = await read_body(request, ConfigurationBody)
        return respond(answers.configuration(await self._service.register(request[ACCESS], body)), 201)

    async def list_all(self, request: web.Request) -> web.Response:
        """List the configurations, newest first."""
        before, limit = _part(request.query)
        found = await self._service.list_registered(application_of(request), before=before, limit=limit)
        return respond(answers.configurations(found, limit))

    async def get(self, request: web.Request) -> web.Response:
        """Show a configuration."""
        found = await self._service.find(application_of(request), request.match_info["id"])
        return respond(answers.configuration(found))

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a configuration."""
        await self._service.remove(application_of(request), request.match_info["id"])
        return respond_message("Configuration removed")


def _answer(flow: Flow, status: int = 200) -> web.Response:
    return respond(flow_answer(flow), status)


def _part(query: MultiMapping[str]) -> tuple[datetime | None, int]:
    """Return what a part of a list is older than, if anything, and how many items it has. Raises: `Refused`."""
    name = cursor_name(query)
    limit = parse_integer(query, "limit", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)
    text = parse_optional_text(query, name)
    if text is None:
        return None, limit
    try:
        moment = datetime.fromisoformat(text)
        in_utc = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # no time, or one that is outside the years 1 to 9999 in UTC
        raise Refused(invalid_parameter(name), hint="a date-time as created_at has it") from error
    if moment.tzinfo is None:
        raise Refused(invalid_parameter(name), hint="a date-time with its offset, as created_at has it")
    return in_utc, limit
