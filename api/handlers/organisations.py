"""Handlers of ``/organisations`` and their members: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers import organisations as answers
from api.answers.lists import list_of
from api.auth import rights_of
from api.errors import NOT_A_MEMBER, Refused
from api.requests import read_body
from api.responses import respond, respond_message
from api.rights import Rights
from api.rules.application_tokens import is_id
from api.schemas import name_lists
from api.schemas import organisations as schemas
from api.services.organisations import OrganisationService
from common.accounts import DECIDE_MEMBERS, Permission, Role
from common.db.users import Organisation

CHANGED = "Member successfully saved."
REMOVED = "Member successfully removed."
LINKED = "Link successfully made."


class OrganisationHandlers:
    """Handlers of organisations and their members."""

    def __init__(self, service: OrganisationService) -> None:
        self._service = service

    async def list_all(self, request: web.Request) -> web.Response:
        """List the organisations that the user may see, by name."""
        query, rights = name_lists.parse(request.query, fields=1), rights_of(request)
        found = await self._service.list_part(rights, after=(query.after or ("",))[0], most=query.limit)
        items = [answers.organisation(each, _role(rights, each)) for each in found]
        return respond(list_of(items, name_lists.following([(each.name,) for each in found], query), query.limit))

    async def post(self, request: web.Request) -> web.Response:
        """Make an organisation."""
        body = await read_body(request, schemas.OrganisationCreation)
        made = await self._service.create(rights_of(request), body.name)
        return respond(answers.organisation(made), 201)

    async def get(self, request: web.Request) -> web.Response:
        """Show an organisation."""
        found = await self._find(request)
        return respond(answers.organisation(found, _role(rights_of(request), found)))

    async def list_members(self, request: web.Request) -> web.Response:
        """List the members, by address."""
        organisation, query = await self._find(request), name_lists.parse(request.query, fields=1)
        found = await self._service.list_members(organisation, after=(query.after or ("",))[0], most=query.limit)
        items = [answers.member(each) for each in found]
        following = name_lists.following([(each.user.email,) for each in found], query)
        return respond(list_of(items, following, query.limit))

    async def put_member(self, request: web.Request) -> web.Response:
        """Save a member: by a PUT, as its answer can have a link, which is kept for no repetition."""
        organisation = await self._find(request, DECIDE_MEMBERS)
        body = await read_body(request, schemas.MemberChange)
        link = await self._service.put_member(rights_of(request), organisation, body.email, body.role)
        answer: answers.MemberLink = {"message": CHANGED, "signInOnce": link}
        return respond(answer)

    async def delete_member(self, request: web.Request) -> web.Response:
        """End a membership."""
        organisation = await self._find(request)
        await self._service.remove_member(rights_of(request), organisation, _user_id(request))
        return respond_message(REMOVED)

    async def put_link(self, request: web.Request) -> web.Response:
        """Make a link that signs a member in once."""
        organisation = await self._find(request, DECIDE_MEMBERS)
        _, link = await self._service.make_link(rights_of(request), organisation, _user_id(request))
        answer: answers.SignInLink = {"message": LINKED, "signInOnce": link}
        return respond(answer)

    async def _find(self, request: web.Request, permission: Permission = Permission.VIEW) -> Organisation:
        return await self._service.find(rights_of(request), request.match_info["organisation"], permission)


def _role(rights: Rights, organisation: Organisation) -> Role | None:
    """Return the user's role in an organisation; None for an operator that is no member."""
    return next((each.role for each in rights.memberships if each.organisation.id == organisation.id), None)


def _user_id(request: web.Request) -> str:
    """Return the id of the user in the path. Raises: `Refused`."""
    if not is_id(request.match_info["user"]):
        raise Refused(NOT_A_MEMBER)
    return request.match_info["user"]
