"""Organisations and their members: an owner decides who is one, an operator makes organisations."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from common.accounts import ROLES, InvalidEmail, Permission, hash_token, link_of, mint_token, parse_email
from common.application_settings import InvalidSetting, read_name
from common.db import applications, audit, sessions, users
from common.db.session import Connection
from common.db.users import AlreadyExists, Member, Organisation, User

_MOST_MEMBERS = 500
_MOST_LISTED = 200


class OrganisationHandlers:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        visitor_of(request).require_operator()
        return await self._list_page(request)

    async def create(self, request: web.Request) -> web.StreamResponse:
        visitor_of(request).require_operator()
        try:
            name = read_name(text_of(request, "name"))
            async with self._context.database.transaction() as connection:
                made = await users.create_organisation(connection, name)
                await audit.record(connection, "organisation.create", made.name, organisation_id=made.id)
        except (InvalidSetting, AlreadyExists) as error:
            return await self._list_page(request, status=422, error=f"Not made: {error}.")
        return self._context.renderer.redirect(_url(made), Flash(f"{made.name} is made. Add its first member."))

    async def get(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request, await self._organisation(request, Permission.VIEW))

    async def put_member(self, request: web.Request) -> web.StreamResponse:
        """Add a user, who is made if there is none with that address, or change a member's role. A user that is there
        already is added by an operator only: another organisation's owner may have made it, and may hold a link for
        it."""
        organisation = await self._organisation(request, Permission.OWN)
        role = text_of(request, "role")
        if role not in ROLES:
            raise web.HTTPBadRequest
        try:
            email = parse_email(text_of(request, "email"))
        except InvalidEmail as error:
            return await self._page(request, organisation, status=422, error=f"Not added: {error}.")
        async with self._context.database.transaction() as connection:
            user = await users.find_user(connection, email)
            is_new = user is None
            may_add = user is None or visitor_of(request).is_operator
            if not may_add and not await self._is_member(connection, organisation, user):
                words = f"{email} has an account already: ask the operator to add it to {organisation.name}."
                return await self._page(request, organisation, status=422, error=words)
            if role != "owner" and user is not None and await self._is_last_owner(connection, organisation, user):
                return await self._page(request, organisation, status=422, error="An organisation has an owner.")
            if len(await users.list_members(connection, organisation.id, most=_MOST_MEMBERS)) >= _MOST_MEMBERS:
                return await self._page(request, organisation, status=422, error="It has 500 members, which is most.")
            user = user or await users.create_user(connection, email)
            await users.put_membership(connection, user.id, organisation.id, role)
            after = {"role": role}
            await audit.record(connection, "member.put", email, organisation_id=organisation.id, after=after)
            link = await self._mint_link(connection, user) if is_new else None
        if link is not None:
            return await self._page(request, organisation, link=link, link_email=email)
        return self._context.renderer.redirect(_url(organisation), Flash(f"{email} is {role} now."))

    async def remove_member(self, request: web.Request) -> web.StreamResponse:
        organisation = await self._organisation(request, Permission.OWN)
        async with self._context.database.transaction() as connection:
            member = await self._member(connection, organisation, text_of(request, "user"))
            if await self._is_last_owner(connection, organisation, member.user):
                return await self._page(request, organisation, status=422, error="An organisation has an owner.")
            await users.remove_membership(connection, member.user.id, organisation.id)
            await audit.record(connection, "member.remove", member.user.email, organisation_id=organisation.id)
        flash = Flash(f"{member.user.email} is no longer a member.")
        is_own = member.user.id == visitor_of(request).user.id
        return self._context.renderer.redirect(ROOT if is_own else _url(organisation), flash)

    async def make_link(self, request: web.Request) -> web.StreamResponse:
        """For a member who belongs to no other organisation: a link opens everything that the user sees."""
        organisation = await self._organisation(request, Permission.OWN)
        async with self._context.database.transaction() as connection:
            member = await self._member(connection, organisation, text_of(request, "user"))
            others = [
                each
                for each in await users.list_memberships(connection, member.user.id)
                if each.organisation.id != organisation.id
            ]
            if (others or member.user.is_operator) and not visitor_of(request).is_operator:
                words = f"{member.user.email} belongs to others too: only an operator makes a link for that user."
                return await self._page(request, organisation, status=422, error=words)
            await audit.record(connection, "user.link", member.user.email, organisation_id=organisation.id)
            link = await self._mint_link(connection, member.user)
        return await self._page(request, organisation, link=link, link_email=member.user.email)

    async def _organisation(self, request: web.Request, permission: Permission) -> Organisation:
        organisation_id = request.match_info["organisation"]
        visitor_of(request).require(permission, organisation_id)
        async with self._context.database.connection() as connection:
            found = await users.find_organisation(connection, organisation_id)
        if found is None or found.id != organisation_id:
            raise web.HTTPNotFound
        return found

    async def _member(self, connection: Connection, organisation: Organisation, user_id: str) -> Member:
        members = await users.list_members(connection, organisation.id, most=_MOST_MEMBERS)
        for member in members:
            if member.user.id == user_id:
                return member
        raise web.HTTPNotFound

    async def _is_member(self, connection: Connection, organisation: Organisation, user: User | None) -> bool:
        if user is None:
            return False
        memberships = await users.list_memberships(connection, user.id)
        return any(each.organisation.id == organisation.id for each in memberships)

    async def _is_last_owner(self, connection: Connection, organisation: Organisation, user: User) -> bool:
        members = await users.list_members(connection, organisation.id, most=_MOST_MEMBERS)
        is_owner = any(each.user.id == user.id and each.role == "owner" for each in members)
        return is_owner and not await users.count_other_owners(connection, organisation.id, user.id)

    async def _mint_link(self, connection: Connection, user: User) -> str:
        token = mint_token()
        await sessions.create_link(connection, hash_token(token), user.id, sessions.LINK_LIFETIME)
        return link_of(self._context.settings.base_url, token)

    async def _page(
        self,
        request: web.Request,
        organisation: Organisation,
        *,
        status: int = 200,
        error: str | None = None,
        link: str | None = None,
        link_email: str = "",
    ) -> web.Response:
        async with self._context.database.connection() as connection:
            members = await users.list_members(connection, organisation.id, most=_MOST_MEMBERS)
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
            may_own=visitor_of(request).may(Permission.OWN, organisation.id),
        )

    async def _list_page(self, request: web.Request, *, status: int = 200, error: str | None = None) -> web.Response:
        after = request.query.get("after", "")
        async with self._context.database.connection() as connection:
            found = await users.list_organisations(connection, after=after, most=_MOST_LISTED)
        more = found[-1].name if len(found) == _MOST_LISTED else None
        return self._context.renderer.page(
            request, "organisations.html", status=status, organisations=found, more=more, error=error
        )


def _url(organisation: Organisation) -> str:
    return f"{ROOT}/organisations/{organisation.id}"
