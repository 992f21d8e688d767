"""Organisations and their members, for the API, the dashboard and the command line.

An owner decides who is a member, an operator makes organisations.

Rules
    a user with an account already is added by an operator alone, and a higher role for a user that belongs to other
        organisations too is an operator's to give: what that makes is a link for the user (`common.db.grants`)
    an owner removes any member, and every member may leave
    an organisation keeps an owner, and has at most `users.MOST_MEMBERS` members
    a link opens everything that its user sees: an owner makes one only for a user that belongs to no other organisation
    an API key makes no link for its own user, and what it makes for others ends with it (`api.rights`)
"""

from __future__ import annotations

from dataclasses import dataclass

from api.errors import (
    FORBIDDEN,
    MEMBER_REFUSED,
    NO_SUCH_ORGANISATION,
    NOT_A_MEMBER,
    NOT_FOUND,
    ORGANISATION_TAKEN,
    Refused,
    invalid_parameter,
)
from api.rights import Rights
from api.rules.application_settings import InvalidSetting, read_name
from api.rules.application_tokens import is_id
from api.services import credentials
from common.accounts import DECIDE_MEMBERS, InvalidEmail, Permission, Role, parse_email
from common.db import audit, grants, user_keys, users
from common.db.pool import Database
from common.db.session import Connection
from common.db.users import AlreadyExists, Member, Organisation, User

_OWN_LINK = "an API key makes no link for its own user: make it on the dashboard, or by `frontage user link`"


@dataclass(frozen=True, slots=True)
class OrganisationService:
    """Organisation use cases. One instance per process; each call takes the caller's rights.

    `base_url`: where links lead.
    """

    database: Database
    base_url: str

    async def list_part(self, rights: Rights, *, after: str, most: int) -> list[Organisation]:
        """Return the organisations that the user may see by name, after the name `after`."""
        async with self.database.connection() as connection:
            return await users.list_organisations(
                connection, after=after, most=most, organisation_ids=rights.visible_organisation_ids
            )

    async def create(self, rights: Rights, name: str) -> Organisation:
        """Make an organisation. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            made = await audit.find_earlier(connection, "organisation.create")
            known = None if made is None else await users.find_organisation(connection, made.subject)
            return known or await _create(connection, name)

    async def find(
        self, rights: Rights, organisation_id: str, permission: Permission = Permission.VIEW
    ) -> Organisation:
        """Return the organisation with this id. Raises: `Refused`."""
        rights.require(permission, organisation_id)
        found = None
        if is_id(organisation_id):
            async with self.database.connection() as connection:
                found = await users.get_organisation(connection, organisation_id)
        if found is None:
            raise Refused(NOT_FOUND)
        return found

    async def find_named(self, rights: Rights, text: str) -> Organisation:
        """Return the organisation with this id or name. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            found = await users.find_organisation(connection, text)
        if found is None:
            raise Refused(NO_SUCH_ORGANISATION, hint=f"there is no organisation {text[:100]}")
        return found

    async def list_members(self, organisation: Organisation, *, after: str, most: int) -> list[Member]:
        """Return members by address, after the address `after`."""
        async with self.database.connection() as connection:
            return await users.list_members(connection, organisation.id, after=after, most=most)

    async def put_member(self, rights: Rights, organisation: Organisation, email: str, role: Role) -> str | None:
        """Add a user, or change a member's role. Return a link where the user is new or has gained rights.

        A user is made where there is none with this address; the link signs that user in once.

        Raises: `Refused`.
        """
        rights.require(DECIDE_MEMBERS, organisation.id)
        try:
            address = parse_email(email)
        except InvalidEmail as error:
            raise Refused(invalid_parameter("email"), hint=str(error)) from error
        async with self.database.transaction() as connection:
            user = await users.find_user(connection, address)
            member = await users.get_member(connection, organisation.id, user.id) if user is not None else None
            if user is not None and member is None and not rights.is_operator:
                words = f"{address} has an account already: ask the operator to add it to {organisation.name}"
                raise Refused(MEMBER_REFUSED, code="account_exists", hint=words)
            added = user or await users.create_user(connection, address)
            has_gained = await _give_role(connection, organisation, added, member, role)
            if has_gained and member is not None and not rights.is_operator:
                raise _shared(added, "gives that user a higher role")
            return await self._mint_link(connection, rights, added) if has_gained or user is None else None

    async def find_removable(self, rights: Rights, organisation: Organisation, user_id: str) -> Member:
        """Return the member that `remove_member` would remove. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            return await _find_removable(connection, rights, organisation, user_id)

    async def remove_member(self, rights: Rights, organisation: Organisation, user_id: str) -> Member:
        """Remove the member, and return it. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            member = await _find_removable(connection, rights, organisation, user_id)
            await _end_membership(connection, organisation, member)
        return member

    async def make_link(self, rights: Rights, organisation: Organisation, user_id: str) -> tuple[Member, str]:
        """Make a link that signs the member in once. Raises: `Refused`."""
        rights.require(DECIDE_MEMBERS, organisation.id)
        async with self.database.transaction() as connection:
            member = await _find_member(connection, organisation, user_id)
            memberships = await users.list_memberships(connection, member.user.id)
            if (len(memberships) > 1 or member.user.is_operator) and not rights.is_operator:
                raise _shared(member.user, "makes a link for that user")
            await audit.record(connection, "user.link", member.user.email, organisation_id=organisation.id)
            return member, await self._mint_link(connection, rights, member.user)

    async def _mint_link(self, connection: Connection, rights: Rights, user: User) -> str:
        """Make a link by these rights. Raises: `Refused`."""
        if rights.by_key is not None:
            holder = await user_keys.hold(connection, rights.by_key)
            if holder is None:
                raise Refused(FORBIDDEN, code="key_unknown", hint="the API key ended meanwhile")
            if holder == user.id:
                raise Refused(FORBIDDEN, code="own_link", hint=_OWN_LINK)
        return await credentials.mint_link(connection, self.base_url, user, by_key=rights.by_key)


async def join(connection: Connection, user: User, text: str, role: Role) -> None:
    """Make a new user a member of the organisation with this id or name; one that is missing is made.

    The caller makes the link that signs the user in.

    Raises: `Refused`.
    """
    organisation = await users.find_organisation(connection, text) or await _create(connection, text)
    await _give_role(connection, organisation, user, None, role)


async def set_role(connection: Connection, user: User, text: str, role: Role | None) -> None:
    """Give the user this role in the organisation with this id or name, or end the membership with None.

    An organisation that is missing is made for its first member. Raises: `Refused`.
    """
    organisation = await users.find_organisation(connection, text)
    member = await users.get_member(connection, organisation.id, user.id) if organisation is not None else None
    if role is None:
        if organisation is not None and member is not None:
            await _refuse_last_owner(connection, organisation, member)
            await _end_membership(connection, organisation, member)
    elif member is None or member.role != role:
        await _give_role(connection, organisation or await _create(connection, text), user, member, role)


async def _end_membership(connection: Connection, organisation: Organisation, member: Member) -> None:
    await users.remove_membership(connection, member.user.id, organisation.id)
    await audit.record(
        connection,
        "member.remove",
        member.user.email,
        organisation_id=organisation.id,
        before={"role": member.role},
    )


async def _create(connection: Connection, name: str) -> Organisation:
    """Make an organisation. Raises: `Refused`."""
    try:
        made = await users.create_organisation(connection, read_name(name))
    except InvalidSetting as error:
        raise Refused(invalid_parameter("name"), hint=str(error)) from error
    except AlreadyExists as error:
        raise Refused(ORGANISATION_TAKEN, hint=str(error)) from error
    await audit.record(connection, "organisation.create", made.name, organisation_id=made.id)
    return made


async def _give_role(
    connection: Connection, organisation: Organisation, user: User, member: Member | None, role: Role
) -> bool:
    """Give the user, who is `member` so far, the role. Return whether that was a gain. Raises: `Refused`."""
    if role != "owner" and member is not None:
        await _refuse_last_owner(connection, organisation, member)
    try:
        ended = await grants.give_role(connection, user, organisation.id, role)
    except users.TooManyMembers as error:
        raise Refused(MEMBER_REFUSED, hint=str(error)) from error
    await credentials.record_ended(connection, user, ended)
    before = {"role": member.role} if member is not None else None
    await audit.record(
        connection, "member.put", user.email, organisation_id=organisation.id, before=before, after={"role": role}
    )
    return ended is not None


def _shared(user: User, what: str) -> Refused:
    hint = f"{user.email} belongs to others too: only an operator {what}"
    return Refused(MEMBER_REFUSED, code="account_shared", hint=hint)


async def _find_member(connection: Connection, organisation: Organisation, user_id: str) -> Member:
    """Return the member. Raises: `Refused`."""
    member = await users.get_member(connection, organisation.id, user_id)
    if member is None:
        raise Refused(NOT_A_MEMBER, hint=f"the user is no member of {organisation.name}")
    return member


async def _find_removable(connection: Connection, rights: Rights, organisation: Organisation, user_id: str) -> Member:
    """Return a member that these rights may remove. Raises: `Refused`."""
    leaves = user_id == rights.user_id and rights.at_most is Permission.OWN
    rights.require(Permission.VIEW if leaves else DECIDE_MEMBERS, organisation.id)
    member = await _find_member(connection, organisation, user_id)
    await _refuse_last_owner(connection, organisation, member)
    return member


async def _refuse_last_owner(connection: Connection, organisation: Organisation, member: Member) -> None:
    """Refuse to let the organisation's only owner go. Raises: `Refused`."""
    try:
        await users.refuse_last_owner(connection, organisation.id, member)
    except users.LastOwner as error:
        raise Refused(MEMBER_REFUSED, code="last_owner", hint=str(error)) from error
