"""The user of a request, and what the user may see and do."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from api.rights import Rights
from common.accounts import Permission
from common.db.applications import Application
from common.db.users import User


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInVisitor(Rights):
    """`csrf_token` belongs to the session, whose stored hash is `session_hash`."""

    user: User
    session_hash: bytes
    csrf_token: str

    @property
    def owns_any(self) -> bool:
        """Whether there is an organisation that the visitor may add applications to."""
        return self.roles.owns_any

    def may_change(self, application: Application) -> bool:
        """Return whether the visitor may change the application."""
        return self.may(Permission.CHANGE, application.organisation_id)

    def may_own(self, application: Application) -> bool:
        """Return whether the visitor may do what an owner of the application may."""
        return self.may(Permission.OWN, application.organisation_id)


VISITOR: web.RequestKey[SignedInVisitor] = web.RequestKey("visitor", SignedInVisitor)


def visitor_of(request: web.Request) -> SignedInVisitor:
    """Return the visitor of a request."""
    return request[VISITOR]
