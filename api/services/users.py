"""Users as an operator manages them: made and deleted, and what signs them in.

Rules
    only an operator does any of it; what users do with their own account: `api.services.credentials`
    a user that is made, or becomes an operator, gets a link that signs in once
    an organisation keeps an owner: its only one is not deleted
"""

from __future__ import annotations

from dataclasses import dataclass

from api.errors import (
    MEMBER_REFUSED,
    NO_SUCH_KEY,
    NO_SUCH_PASSKEY,
    NO_SUCH_USER,
    TOO_MANY_KEYS,
    USER_TAKEN,
    Refused,
    invalid_parameter,
)
from api.rights import Rights
from api.rules.application_settings import InvalidSetting, read_name
from api.services import credentials, organisations
from api.services.credentials import MadeKey
from common.accounts import InvalidEmail, Permission, Role, parse_email
from common.db import audit, grants, oidc_subjects, passkeys, sessions, user_keys, users
from common.db.passkeys import Passkey
from common.db.pool import Database
from common.db.session import Connection
from common.db.user_keys import UserKey
from common.db.users import AlreadyExists, Membership, User


@dataclass(frozen=True, slots=True)
class NewUser:
    """A user to be made.

    `organisation`: its id or name; one that is missing is made. `password_hash`: None where only the link signs in.
    """

    email: str
    is_operator: bool = False
    organisation: str | None = None
    role: Role = "owner"
    password_hash: str | None = None


@dataclass(frozen=True, slots=True)
class UserService:
    """User use cases. Each call takes the caller's rights, which must be an operator's.

    `base_url`: where links lead.
    """

    database: Database
    base_url: str

    async def create(self, rights: Rights, new: NewUser) -> tuple[User, str]:
        """Make the user. Return it with a link that signs in once. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        address = read_address(new.email)
        async with self.database.transaction() as connection:
            try:
                user = await users.create_user(connection, address, is_operator=new.is_operator)
            except AlreadyExists as error:
                raise Refused(USER_TAKEN, hint=str(error)) from error
            await audit.record(connection, "user.create", address, after={"operator": new.is_operator})
            if new.organisation is not None:
                await organisations.join(connection, user, new.organisation, new.role)
            if new.password_hash is not None:
                await users.set_password_hash(connection, user.id, new.password_hash)
            return user, await credentials.mint_link(connection, self.base_url, user)

    async def list_part(self, rights: Rights, *, after: str, most: int) -> list[tuple[User, list[Membership]]]:
        """Return users with their memberships by address, after the address `after`. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            page = await users.list_users(connection, after=after, most=most)
            return [(each, await users.list_memberships(connection, each.id)) for each in page]

    async def find(self, rights: Rights, email: str) -> User:
        """Return the user with this address. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            return await _find(connection, email)

    async def set_password(self, rights: Rights, email: str, password_hash: str) -> User:
        """Set the user's password, and end the user's sessions. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            await credentials.set_password(connection, user, password_hash)
            return user

    async def make_link(self, rights: Rights, email: str) -> tuple[User, str]:
        """Make a link that signs the user in once, in place of earlier ones. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            await audit.record(connection, "user.link", user.email)
            return user, await credentials.mint_link(connection, self.base_url, user)

    async def set_operator(self, rights: Rights, email: str, *, is_operator: bool) -> tuple[User, str | None]:
        """Give the user an operator's rights, or end them. Return a link for a user that has gained rights.

        All else that signed that user in has ended.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            has_gained = await change_operator(connection, user, is_operator=is_operator)
            return user, await credentials.mint_link(connection, self.base_url, user) if has_gained else None

    async def end_sessions(self, rights: Rights, email: str) -> tuple[User, int]:
        """End all sessions and links of the user. Return how many sessions there were. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            return user, await credentials.end_sessions(connection, user)

    async def delete(self, rights: Rights, email: str) -> User:
        """Delete the user, with memberships and all that signs in. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            try:
                await users.delete_user(connection, user)
            except users.LastOwner as error:
                raise Refused(MEMBER_REFUSED, code="last_owner", hint=str(error)) from error
            await audit.record(connection, "user.delete", user.email)
            return user

    async def unbind(self, rights: Rights, email: str) -> tuple[User, int]:
        """End the user's bindings to accounts of an OpenID provider. Return how many there were. Raises: `Refused`.

        The next sign-in of an account with the user's verified address binds that one.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            await audit.record(connection, "user.unbind", user.email)
            await sessions.end_all(connection, user.id)
            return user, await oidc_subjects.unbind(connection, user.id)

    async def list_passkeys(self, rights: Rights, email: str) -> list[Passkey]:
        """Return the user's passkeys, oldest first. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            return await passkeys.list_passkeys(connection, (await _find(connection, email)).id)

    async def remove_passkey(self, rights: Rights, email: str, credential_id: bytes) -> tuple[User, str]:
        """Remove a passkey, and end the user's sessions. Return the passkey's name. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            name = await credentials.remove_passkey(connection, user, credential_id)
            if name is None:
                raise Refused(NO_SUCH_PASSKEY, hint=f"{user.email} has no such passkey")
            return user, name

    async def list_keys(self, rights: Rights, email: str) -> list[UserKey]:
        """Return the user's API keys, oldest first. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            return await user_keys.list_keys(connection, (await _find(connection, email)).id)

    async def make_key(
        self,
        rights: Rights,
        email: str,
        name: str,
        permission: Permission,
        days: int,
        application_id: str | None = None,
    ) -> tuple[User, MadeKey]:
        """Make an API key for the user, of `days` days, for one application or all. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        try:
            read = read_name(name)
        except InvalidSetting as error:
            raise Refused(invalid_parameter("name"), hint=f"the key's name: {error}") from error
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            made = await credentials.make_key(connection, user, read, permission, days, application_id)
            if made is None:
                hint = f"{user.email} has {user_keys.MOST_OF_USER} keys, which is most: revoke one"
                raise Refused(TOO_MANY_KEYS, hint=hint)
            return user, made

    async def revoke_key(self, rights: Rights, email: str, key_id: str) -> tuple[User, str]:
        """Revoke an API key of the user. Return the key's name. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            user = await _find(connection, email)
            name = await credentials.revoke_key(connection, user, key_id)
            if name is None:
                raise Refused(NO_SUCH_KEY, hint=f"{user.email} has no such key")
            return user, name


async def change_operator(connection: Connection, user: User, *, is_operator: bool) -> bool:
    """Give the user an operator's rights, or end them. Return whether that was a gain, and ended what signed it in."""
    ended = await grants.set_operator(connection, user, is_operator=is_operator)
    await credentials.record_ended(connection, user, ended)
    await audit.record(connection, "user.operator", user.email, after={"operator": is_operator})
    return ended is not None


def read_address(email: str) -> str:
    """Return the address in canonical form. Raises: `Refused`."""
    try:
        return parse_email(email)
    except InvalidEmail as error:
        raise Refused(invalid_parameter("email"), hint=str(error)) from error


async def _find(connection: Connection, email: str) -> User:
    """Return the user with this address. Raises: `Refused`."""
    address = read_address(email)
    user = await users.find_user(connection, address)
    if user is None:
        raise Refused(NO_SUCH_USER, hint=f"there is no user {address}")
    return user
