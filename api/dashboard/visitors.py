"""The user of a request, and what the user may see and do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from common.accounts import PERMISSIONS, Permission
from common.db.applications import Application
from common.db.users import Membership, User


@dataclass(frozen=True, slots=True)
class Visitor:
    """`csrf_token` belongs to the session, whose stored hash is `session_hash`."""

    user: User
    memberships: tuple[Membership, ...]
    session_hash: bytes
    csrf_token: str

    @property
    def is_operator(self) -> bool:
        return self.user.is_operator

    @property
    def organisation_ids(self) -> list[str]:
        return [each.organisation.id for each in self.memberships]

    @property
    def owns_any(self) -> bool:
        """Whether there is an organisation that the visitor may add applications to."""
        return self.is_operator or any(each.role == "owner" for each in self.memberships)

    def may(self, permission: Permission | str, organisation_id: str | None) -> bool:
        if self.is_operator:
            return True
        return any(
            each.organisation.id == organisation_id and Permission(permission) in PERMISSIONS[each.role]
            for each in self.memberships
        )

    def require(self, permission: Permission, organisation_id: str | None) -> None:
        """Raises: HTTPNotFound for what the visitor may not see, so that a guess learns nothing; HTTPForbidden for what
        the visitor sees and may not change."""
        if not self.may(Permission.VIEW, organisation_id):
            raise web.HTTPNotFound
        if not self.may(permission, organisation_id):
            raise web.HTTPForbidden

    def require_operator(self) -> None:
        """Raises: HTTPNotFound."""
        if not self.is_operator:
            raise web.HTTPNotFound

    def may_change(self, application: Application) -> bool:
        return self.may(Permission.CHANGE, application.organisation_id)

    def may_own(self, application: Application) -> bool:
        return self.may(Permission.OWN, application.organisation_id)


VISITOR: web.RequestKey[Visitor] = web.RequestKey("visitor", Visitor)


def visitor_of(request: web.Request) -> Visitor:
    return request[VISITOR]
