"""Users that the operator's OpenID Connect provider signs in, and the rights that it gives them.

Rules
    the provider's account is bound to a user at its first sign-in, by an e-mail address that the provider has verified;
        from then on by its subject alone, whatever its address becomes
    who has no user and is given no role gets none made
    organisations that `OIDC_ROLES` names, and an operator's rights where it names those, are the provider's to give:
        each sign-in sets them anew, and takes away what the claim has no more
    an organisation keeps an owner: its only one stays
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.errors import Refused
from api.services import organisations
from api.services.users import change_operator
from common.accounts import PERMISSIONS, InvalidEmail, Role, parse_email
from common.db import audit, oidc_subjects, users
from common.db.pool import Database
from common.db.session import Connection
from common.db.users import AlreadyExists, User
from common.errors import FrontageError
from common.logs import get_logger
from common.setting_values import OidcGrant

_log = get_logger("api.services.oidc_users")


class NotAdmitted(FrontageError):
    """The provider knows the user, and Frontage has no place for it. The text is for the user."""


@dataclass(frozen=True, slots=True)
class OidcUsers:
    """Users by the provider's word. `grants`: what its claim's values give."""

    database: Database
    grants: Sequence[OidcGrant]

    async def admit(self, issuer: str, subject: str, email: str | None, values: frozenset[str]) -> User:
        """Return the user of the provider's account, with the rights that its claim gives. Raises: `NotAdmitted`."""
        matched = [grant for grant in self.grants if grant.value in values]
        async with self.database.transaction() as connection:
            user = await oidc_subjects.find_user(connection, issuer, subject)
            if user is None:
                user = await _bind(connection, issuer, subject, email, may_create=bool(matched))
            await self._set_rights(connection, user, matched)
            admitted = await users.get_user(connection, user.id)
        assert admitted is not None, "it is locked by its binding"
        return admitted

    async def _set_rights(self, connection: Connection, user: User, matched: Sequence[OidcGrant]) -> None:
        """Give the user what the claim gives, and take what it does not."""
        is_governed = any(grant.organisation is None for grant in self.grants)
        is_operator = any(grant.organisation is None for grant in matched)
        if is_governed and is_operator != user.is_operator:
            await change_operator(connection, user, is_operator=is_operator)
        wanted = _highest_roles(matched)
        for organisation in dict.fromkeys(grant.organisation for grant in self.grants if grant.organisation):
            try:
                await organisations.set_role(connection, user, organisation, wanted.get(organisation))
            except Refused as error:
                _log.warning(
                    "a role by OpenID Connect was left as it is",
                    user=user.email,
                    organisation=organisation,
                    reason=error.hint or error.refusal.message,
                )


async def _bind(connection: Connection, issuer: str, subject: str, email: str | None, *, may_create: bool) -> User:
    """Bind the provider's account to the user with its address, made where there is none. Raises: `NotAdmitted`."""
    if email is None:
        raise NotAdmitted("Your provider has not verified your e-mail address. Verify it there, then sign in again.")
    try:
        address = parse_email(email)
    except InvalidEmail as error:
        raise NotAdmitted("Your provider has no usable e-mail address of yours.") from error
    user = await users.find_user(connection, address)
    if user is None:
        if not may_create:
            raise NotAdmitted(f"There is no account for {address} here. Ask the operator, or an owner, to add you.")
        try:
            user = await users.create_user(connection, address)
        except AlreadyExists as error:
            raise NotAdmitted("Your account was made this moment. Sign in again.") from error
        await audit.record(connection, "user.create", address, after={"operator": False})
    if not await oidc_subjects.bind(connection, issuer, subject, user.id):
        raise NotAdmitted(f"{address} signs in by another account of your provider. Use that one, or ask the operator.")
    await audit.record(connection, "user.bind", address, after={"issuer": issuer})
    return user


def _highest_roles(matched: Sequence[OidcGrant]) -> Mapping[str, Role]:
    """Return the highest role of each organisation."""
    roles: dict[str, Role] = {}
    for grant in matched:
        if grant.organisation is None or grant.role is None:
            continue
        before = roles.get(grant.organisation)
        if before is None or PERMISSIONS[grant.role] > PERMISSIONS[before]:
            roles[grant.organisation] = grant.role
    return roles
