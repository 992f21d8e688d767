"""What the user of a session, of an API key or of the command line may see and do.

What an API key opens makes no credential that outlasts the key: a link that is made with a key, the session of that
link, and the links which that session makes end with the key, and none of them makes a key, a passkey or a password.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.errors import FORBIDDEN, NOT_FOUND, Refused
from common.accounts import KEY_PERMISSIONS, PERMISSIONS, Permission, Role
from common.db.user_keys import UserKey
from common.db.users import Membership, User

_FORBIDDEN_HINT = "your role in this organisation, or your key, does not permit this"


@dataclass(frozen=True, slots=True)
class Roles:
    """What a user may see and do, equal for users with the same roles in the same organisations.

    `members`: ids of organisations, each with the role.
    """

    is_operator: bool
    members: frozenset[tuple[str, Role]]

    @property
    def visible_organisation_ids(self) -> list[str] | None:
        """Return the ids of the organisations that are visible, or None for all."""
        return None if self.is_operator else sorted(organisation_id for organisation_id, _ in self.members)

    @property
    def tenant(self) -> str:
        """Return what work for these roles is charged to: one organisation, or the operators."""
        return "" if self.is_operator else min((organisation_id for organisation_id, _ in self.members), default="")

    @property
    def owns_any(self) -> bool:
        """Return whether there is an organisation that applications may be added to."""
        return self.is_operator or any(role == "owner" for _, role in self.members)

    def may(self, permission: Permission, organisation_id: str | None) -> bool:
        """Return whether these roles permit something in an organisation."""
        return self.is_operator or any(
            member == organisation_id and permission in PERMISSIONS[role] for member, role in self.members
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of a user in a request.

    `at_most`: what the key permits; a session permits all that its user may do. `by_key`: the id of the API key
    that the request comes from, by itself or by a link that was made with it: what it makes ends with that key.
    """

    user_id: str | None
    is_operator: bool
    memberships: tuple[Membership, ...]
    at_most: Permission = Permission.OWN
    by_key: str | None = None

    @property
    def roles(self) -> Roles:
        """Return the user's roles, without the user."""
        return Roles(self.is_operator, frozenset((each.organisation.id, each.role) for each in self.memberships))

    @property
    def visible_organisation_ids(self) -> list[str] | None:
        """Return the ids of the organisations that are visible, or None for all."""
        return self.roles.visible_organisation_ids

    def may(self, permission: Permission | str, organisation_id: str | None) -> bool:
        """Return whether the user, by this key or session, may do something in an organisation."""
        wanted = Permission(permission)
        return wanted in KEY_PERMISSIONS[self.at_most] and self.roles.may(wanted, organisation_id)

    def require(self, permission: Permission, organisation_id: str | None) -> None:
        """Refuse what the rights do not permit. Raises: `Refused`.

        What the user may not see is not found, so that a guess learns nothing; what the user sees and may not
        change is forbidden.
        """
        if not self.may(Permission.VIEW, organisation_id):
            raise Refused(NOT_FOUND)
        if not self.may(permission, organisation_id):
            raise Refused(FORBIDDEN, code="role", hint=_FORBIDDEN_HINT)

    def require_operator(self, permission: Permission = Permission.VIEW) -> None:
        """Refuse a user that is no operator. Raises: `Refused`."""
        if not self.is_operator:
            raise Refused(NOT_FOUND)
        self.require(permission, None)


OPERATOR = Rights(user_id=None, is_operator=True, memberships=())
"""Of the command line, whose operator holds the database and the master key."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The user whose API key opened a request."""

    key: UserKey
    user: User
    rights: Rights

    @property
    def actor(self) -> str:
        """Return how the audit log names the user, by this key."""
        return f"{self.user.email} ({self.key.id})"
