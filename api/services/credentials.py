"""What signs a user in: passwords, links, passkeys, API keys and sessions, made and ended.

Shared by the user's own account on the dashboard and by the operator's commands (`api.services.users`). Each function
is one use case with its entry in the audit log, in the transaction that the caller opens; who may do it is the caller's
to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from api.errors import FORBIDDEN, NO_SUCH_APPLICATION, Refused
from api.rules.application_tokens import is_id
from common.accounts import Permission, hash_token, mint_key, mint_random_token, sign_in_url
from common.db import audit, passkeys, sessions, user_keys, users
from common.db.applications import get_application
from common.db.grants import Ended
from common.db.passkeys import StoredKey
from common.db.session import Connection
from common.db.user_keys import UserKey
from common.db.users import User


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new API key. `token` is the key itself, which is readable this once."""

    token: str
    key: UserKey


async def set_password(connection: Connection, user: User, password_hash: str, *, but: bytes | None = None) -> None:
    """Set the password, and end the user's links and sessions, except the session with the hash `but`."""
    await users.set_password_hash(connection, user.id, password_hash)
    await sessions.end_all(connection, user.id, but=but)
    await audit.record(connection, "user.set_password", user.email)


async def mint_link(connection: Connection, base_url: str, user: User, *, by_key: str | None = None) -> str:
    """Make a link that signs the user in once, and revoke earlier ones.

    The caller records why, as that differs. `by_key`: the API key that it is made with, and ends with.
    """
    token = mint_random_token()
    await sessions.create_link(connection, hash_token(token), user.id, sessions.LINK_LIFETIME, by_key=by_key)
    return sign_in_url(base_url, token)


async def refuse_ended_key(connection: Connection, by_key: str | None) -> None:
    """Keep the API key that something is made with from being revoked until the transaction ends.

    Raises: `Refused` where it has ended.
    """
    if by_key is not None and await user_keys.hold(connection, by_key) is None:
        raise Refused(FORBIDDEN, code="key_unknown", hint="the API key ended meanwhile")


async def start_session(
    connection: Connection,
    token_hash: bytes,
    user: User,
    address: str,
    user_agent: str,
    by: Mapping[str, str],
    *,
    lifetime: timedelta = sessions.LIFETIME,
    by_key: str | None = None,
) -> bool:
    """Sign the user in, for `lifetime` at most. Return False when what proved the user has ended.

    `by`: the way, for the audit log.
    """
    is_started = await sessions.start(
        connection, token_hash, user, address, user_agent, lifetime=lifetime, by_key=by_key
    )
    if is_started:
        await audit.record(connection, "user.sign_in", user.email, after=by)
    return is_started


async def record_ended(connection: Connection, user: User, ended: Ended | None) -> None:
    """Record what a gain of rights ended (`common.db.grants`), if anything."""
    if ended:
        await audit.record(connection, "user.end_credentials", user.email, before=ended)


async def end_sessions(connection: Connection, user: User) -> int:
    """End all sessions and links of the user. Return how many sessions there were."""
    await audit.record(connection, "user.sign_out", user.email)
    return await sessions.end_all(connection, user.id)


async def add_passkey(
    connection: Connection, user: User, credential_id: bytes, public_key: bytes, sign_count: int, name: str
) -> bool:
    """Add a verified passkey. Return False when it is registered already, or the user has as many as are allowed."""
    is_new = await passkeys.add(connection, user.id, credential_id, public_key, sign_count, name)
    if is_new:
        await audit.record(connection, "passkey.add", user.email, after={"name": name})
    return is_new


async def note_passkey_use(connection: Connection, key: StoredKey, credential_id: bytes, sign_count: int) -> bool:
    """Note that the passkey proved its user. Return False for what may be a copy of it, whose sign count went back."""
    if await passkeys.note_use(connection, credential_id, sign_count):
        return True
    why = {"passkey": key.name, "reason": "its sign count went back, as that of a copy does"}
    await audit.record(connection, "passkey.refused", key.email, after=why)
    return False


async def remove_passkey(
    connection: Connection, user: User, credential_id: bytes, *, but: bytes | None = None
) -> str | None:
    """Remove the passkey, and return its name, or None when the user has no such passkey.

    The sessions that it may have started end with it, except the one with the hash `but`.
    """
    name = await passkeys.remove(connection, user.id, credential_id)
    if name is not None:
        await sessions.end_all(connection, user.id, but=but)
        await audit.record(connection, "passkey.remove", user.email, before={"name": name})
    return name


async def make_key(
    connection: Connection,
    user: User,
    name: str,
    permission: Permission,
    days: int,
    application_id: str | None = None,
) -> MadeKey | None:
    """Make an API key, of one application or of all that the user sees.

    Return None when the user has as many as are allowed. Raises: `Refused` for an application that the user does not
    see.
    """
    if application_id is not None:
        await _refuse_unseen(connection, user, application_id)
    token = mint_key()
    key = await user_keys.add(connection, user, hash_token(token), name, permission, days, application_id)
    if key is None:
        return None
    after = {"key": key.id, "name": name, "permission": permission.value, "expires_at": key.expires_at}
    of_application = {} if application_id is None else {"application": application_id}
    await audit.record(connection, "user_key.create", user.email, after=after | of_application)
    return MadeKey(token, key)


async def _refuse_unseen(connection: Connection, user: User, application_id: str) -> None:
    """Refuse an application that there is not, or that the user has no role for. Raises: `Refused`."""
    application = await get_application(connection, application_id) if is_id(application_id) else None
    organisations = {each.organisation.id for each in await users.list_memberships(connection, user.id)}
    if application is None or not (user.is_operator or application.organisation_id in organisations):
        raise Refused(NO_SUCH_APPLICATION, hint=f"{user.email} sees no application {application_id[:100]}")


async def revoke_key(connection: Connection, user: User, key_id: str) -> str | None:
    """Revoke an API key: it opens nothing from then on. Return its name, or None when the user has no such key."""
    revoked = await user_keys.revoke(connection, user, key_id)
    if revoked is None:
        return None
    name, configurations = revoked
    for each in configurations:
        await audit.record(
            connection,
            "configuration.remove",
            each.id,
            application_id=each.application_id,
            before={"config": each.config},
        )
    await audit.record(connection, "user_key.revoke", user.email, before={"key": key_id, "name": name})
    return name
