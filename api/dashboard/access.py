"""Finds what a request is about, and refuses what its visitor may not see or change, before anything else is read."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.visitors import visitor_of
from api.rules.application_tokens import is_id
from common.accounts import Permission
from common.db.applications import Application, get_application
from common.errors import InvalidName
from common.names import DomainName, parse_enrollable


async def find_application(
    context: DashboardContext, request: web.Request, permission: Permission = Permission.VIEW
) -> Application:
    """Return the application in the path, with which the visitor may do `permission`.

    What changes something passes `CHANGE` or `OWN`. Raises: HTTPNotFound, `Refused`, `DatabaseUnavailable`.
    """
    application_id = request.match_info["application"]
    if not is_id(application_id):
        raise web.HTTPNotFound
    application = await load_application(context, application_id)
    visitor_of(request).require(permission, application.organisation_id)
    return application


async def load_application(context: DashboardContext, application_id: str) -> Application:
    """Return the application, without a check of rights. Raises: HTTPNotFound, `DatabaseUnavailable`."""
    async with context.database.connection() as connection:
        application = await get_application(connection, application_id)
    if application is None:
        raise web.HTTPNotFound
    return application


def name_of(request: web.Request) -> DomainName:
    """Return the domain in the path. Raises: HTTPNotFound."""
    try:
        return parse_enrollable(request.match_info["name"])
    except InvalidName as error:
        raise web.HTTPNotFound from error
