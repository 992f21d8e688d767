"""Pages of organisations and their members, over `api.services.organisations`."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.errors import FORBIDDEN, NOT_A_MEMBER, NOT_FOUND, Refused
from common.accounts import DECIDE_MEMBERS, ROLES, Permission
from common.db import applications, users
from common.db.users import Organisation, User

_MOST_LISTED = 200
_PAGES_OF_THEIR_OWN = (FORBIDDEN, NOT_FOUND, NOT_A_MEMBER)


class OrganisationPages:
    """Pages of organisations and their members."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._service = context.organisations

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """List all organisations, for operators."""
        visitor_of(request).require_operator()
        return await self._list_page(request)

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Make an organisation."""
        try:
            made = await self._service.create(visitor_of(request), text_of(request, "name"))
        except Refused as error:
            return await self._list_page(request, status=422, error=f"Not made: {_words(error)}.")
        return self._context.renderer.redirect(_url(made), Flash(f"{made.name} is made. Add its first member."))

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show an organisation and its members."""
        return await self._page(request, await self._organisation(request, Permission.VIEW))

    async def put_member(self, request: web.Request) -> web.StreamResponse:
        """Add a member, or change a member's role."""
        organisation = await self._organisation(request, DECIDE_MEMBERS)
        role = next((each for each in ROLES if each == text_of(request, "role")), None)
        if role is None:
            raise web.HTTPBadRequest
        email = text_of(request, "email")
        try:
            link = await self._service.put_member(visitor_of(request), organisation, email, role)
        except Refused as error:
            return await self._page(request, organisation, status=422, error=f"Not saved: {_words(error)}.")
        if link is not None:
            return await self._page(request, organisation, link=link, link_email=email)
        return self._context.renderer.redirect(_url(organisation), Flash(f"{email} is {role} now."))

    async def remove_member(self, request: web.Request) -> web.StreamResponse:
        """In two steps, as only an operator can undo it: the first answer asks whether that is meant."""
        visitor, organisation = visitor_of(request), await self._organisation(request, Permission.VIEW)
        user_id, is_sure = text_of(request, "user"), text_of(request, "sure") == "yes"
        remove = self._service.remove_member if is_sure else self._service.find_removable
        try:
            member = await remove(visitor, organisation, user_id)
        except Refused as error:
            return await self._page(request, organisation, status=422, error=f"Not removed: {_words(error)}.")
        if not is_sure:
            return await self._page(request, organisation, leaving=member.user)
        if member.user.id != visitor.user.id:
            flash = Flash(f"{member.user.email} is no longer a member.")
            return self._context.renderer.redirect(_url(organisation), flash)
        location = _url(organisation) if visitor.is_operator else ROOT
        return self._context.renderer.redirect(location, Flash(f"You have left {organisation.name}."))

    async def make_link(self, request: web.Request) -> web.StreamResponse:
        """Make a link that signs a member in once."""
        organisation = await self._organisation(request, DECIDE_MEMBERS)
        try:
            member, link = await self._service.make_link(visitor_of(request), organisation, text_of(request, "user"))
        except Refused as error:
            return await self._page(request, organisation, status=422, error=f"No link was made: {_words(error)}.")
        return await self._page(request, organisation, link=link, link_email=member.user.email)

    async def _organisation(self, request: web.Request, permission: Permission) -> Organisation:
        return await self._service.find(visitor_of(request), request.match_info["organisation"], permission)

    async def _page(
        self,
        request: web.Request,
        organisation: Organisation,
        *,
        status: int = 200,
        error: str | None = None,
        link: str | None = None,
        link_email: str = "",
        leaving: User | None = None,
    ) -> web.Response:
        async with self._context.database.connection() as connection:
            members = await users.list_members(connection, organisation.id)
            owned = await applications.list_visible(connection, [organisation.id], most=_MOST_LISTED)
        return self._context.renderer.page(
            request,
            "organisation.html",
            status=status,
            organisation=organisation,
            members=members,
            applications=owned,
            error=error,
            link=link,
            link_email=link_email,
            leaving=leaving,
            may_decide_members=visitor_of(request).may(DECIDE_MEMBERS, organisation.id),
            may_own=visitor_of(request).may(Permission.OWN, organisation.id),
        )

    async def _list_page(self, request: web.Request, *, status: int = 200, error: str | None = None) -> web.Response:
        after = request.query.get("after", "")
        found = await self._service.list_part(visitor_of(request), after=after, most=_MOST_LISTED)
        more = found[-1].name if len(found) == _MOST_LISTED else None
        return self._context.renderer.page(
            request, "organisations.html", status=status, organisations=found, more=more, error=error
        )


def _words(error: Refused) -> str:
    """Return the words for the form. Raises: `Refused` for what has a page of its own."""
    if error.refusal in _PAGES_OF_THEIR_OWN:
        raise error
    return error.hint or error.refusal.message


def _url(organisation: Organisation) -> str:
    return f"{ROOT}/organisations/{organisation.id}"
