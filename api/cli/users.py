"""`frontage user …`: the people who sign in to the dashboard."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AlwaysJson, AsJson, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.session import Connection
    from common.db.user_keys import UserKey
    from common.db.users import User
    from common.secrets import Keyring

app = typer.Typer(help="Users of the dashboard.", no_args_is_help=True)

_LIST_AT_ONCE = 1000

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's e-mail address.")]


class RoleOption(StrEnum):
    OWNER = "owner"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class PermissionOption(StrEnum):
    VIEW = "view"
    CHANGE = "change"
    OWN = "own"


@app.command()
def create(
    email: Email,
    operator: Annotated[bool, typer.Option("--operator", help="Sees and changes every application.")] = False,
    organisation: Annotated[
        str | None, typer.Option(help="The organisation, by name or id; one that is missing is made.")
    ] = None,
    role: Annotated[RoleOption, typer.Option(help="The role in the organisation.")] = RoleOption.OWNER,
    password_stdin: Annotated[
        bool,
        typer.Option("--password-stdin", help="Read a password from standard input; without one, a link signs in."),
    ] = False,
    _: AlwaysJson = False,
) -> None:
    """Make a user, and print a link that signs in once."""
    from api.cli.database import run_in_database
    from common.db import audit, users

    address, password_hash = parse_address(email), _hash_of_stdin() if password_stdin else None
    if not operator and organisation is None:
        raise OperatorError("give the organisation that the user belongs to (--organisation), or --operator")

    async def work(connection: Connection, _: Keyring) -> str:
        try:
            user = await users.create_user(connection, address, is_operator=operator)
        except users.AlreadyExists as error:
            raise OperatorError(str(error)) from error
        await audit.record(connection, "user.create", address, after={"operator": operator})
        if organisation is not None:
            await _join(connection, user, organisation, role)
        if password_hash is not None:
            await users.set_password_hash(connection, user.id, password_hash)
        return await mint_link(connection, user)

    link = run_in_database(work)
    print_json({"email": address, "operator": operator, "signInOnce": link})


@app.command("list")
def list_(_: AlwaysJson = False) -> None:
    """Print all users, with their organisations and roles."""
    from api.cli.database import run_in_database
    from common.db import users

    async def work(connection: Connection, _: Keyring) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        after = ""
        while page := await users.list_users(connection, after=after, most=_LIST_AT_ONCE):
            shown += [await _shown(connection, user) for user in page]
            after = page[-1].email
        return shown

    print_json(run_in_database(work))


@app.command("set-password")
def set_password(
    email: Email,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read it from standard input.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set a user's password, and end the user's sessions."""
    from api.cli.database import run_in_database
    from common.db import audit, sessions, users

    address = parse_address(email)
    password_hash = _hash_of_stdin() if password_stdin else _hash(typer.prompt("Password", hide_input=True, err=True))

    async def work(connection: Connection, _: Keyring) -> None:
        user = await get_user(connection, address)
        await users.set_password_hash(connection, user.id, password_hash)
        await sessions.end_all(connection, user.id)
        await audit.record(connection, "user.set_password", address)

    run_in_database(work)
    words = f"the password of {address} is set; the user's sessions have ended"
    print_result({"email": address, "hasPassword": True}, words, as_json=as_json)


@app.command()
def link(email: Email, as_json: AsJson = False) -> None:
    """Print a link that signs the user in once, within a day. It replaces the user's link so far."""
    from api.cli.database import run_in_database
    from common.db import audit

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> str:
        await audit.record(connection, "user.link", address)
        return await mint_link(connection, await get_user(connection, address))

    made = run_in_database(work)
    print_result({"email": address, "signInOnce": made}, made, as_json=as_json)


@app.command()
def operator(
    email: Email,
    off: Annotated[bool, typer.Option("--off", help="Take the right away.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a user see and change every application.

    A new operator has to sign in by the link that is printed: all else that signed the user in ends.
    """
    from api.cli.database import run_in_database
    from common.db import audit, grants

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> str | None:
        user = await get_user(connection, address)
        has_gained = await grants.set_operator(connection, user, is_operator=not off)
        await audit.record(connection, "user.operator", address, after={"operator": not off})
        return await mint_link(connection, user) if has_gained else None

    link = run_in_database(work)
    words = with_link(f"{address} is {'no longer an' if off else 'an'} operator", link)
    print_result({"email": address, "operator": not off, "signInOnce": link}, words, as_json=as_json)


@app.command("sign-out")
def sign_out(email: Email, as_json: AsJson = False) -> None:
    """End all sessions and links of a user."""
    from api.cli.database import run_in_database
    from common.db import audit, sessions

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> int:
        await audit.record(connection, "user.sign_out", address)
        return await sessions.end_all(connection, (await get_user(connection, address)).id)

    ended = run_in_database(work)
    print_result({"email": address, "ended": ended}, f"sessions of {address} that have ended: {ended}", as_json=as_json)


@app.command()
def delete(email: Email, as_json: AsJson = False) -> None:
    """Delete a user, with all sessions."""
    from api.cli.database import run_in_database
    from common.db import audit, users

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> None:
        await users.delete_user(connection, (await get_user(connection, address)).id)
        await audit.record(connection, "user.delete", address)

    run_in_database(work)
    print_result({"email": address, "deleted": True}, f"{address} is deleted", as_json=as_json)


@app.command()
def passkeys(email: Email, _: AlwaysJson = False) -> None:
    """Print a user's passkeys."""
    from api.cli.database import run_in_database
    from common.db import passkeys

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> list[dict[str, Any]]:
        found = await passkeys.list_passkeys(connection, (await get_user(connection, address)).id)
        return [
            {"id": each.id, "name": each.name, "createdAt": _time(each.created_at), "usedAt": _time(each.used_at)}
            for each in found
        ]

    print_json(run_in_database(work))


@app.command("remove-passkey")
def remove_passkey(
    email: Email,
    passkey: Annotated[str, typer.Argument(metavar="ID", help="As `frontage user passkeys` prints it.")],
    as_json: AsJson = False,
) -> None:
    """Remove a user's passkey, such as one of a lost device, and end the user's sessions."""
    from api.cli.database import run_in_database
    from common.db import audit, passkeys, sessions

    address = parse_address(email)
    try:
        credential_id = bytes.fromhex(passkey)
    except ValueError as error:
        raise OperatorError(f"{passkey[:100]!r} is no id of a passkey") from error

    async def work(connection: Connection, _: Keyring) -> str:
        user = await get_user(connection, address)
        name = await passkeys.remove(connection, user.id, credential_id)
        if name is None:
            raise OperatorError(f"{address} has no such passkey: `frontage user passkeys {address}` prints them")
        await sessions.end_all(connection, user.id)
        await audit.record(connection, "passkey.remove", address, before={"name": name})
        return name

    name = run_in_database(work)
    words = f"the passkey {name} of {address} is removed; the user's sessions have ended"
    print_result({"email": address, "passkey": passkey, "name": name}, words, as_json=as_json)


@app.command("create-key")
def create_key(
    email: Email,
    name: Annotated[str, typer.Option(help="What the key is for.")],
    permission: Annotated[PermissionOption, typer.Option(help="What it permits at most.")] = PermissionOption.VIEW,
    days: Annotated[int, typer.Option(min=1, max=365, help="After how many days it expires.")] = 90,
    _: AlwaysJson = False,
) -> None:
    """Make an API key for a user, and print it: it is shown this once. It opens what the user may do, up to the
    permission."""
    from api.cli.database import run_in_database
    from common.accounts import Permission, hash_token, mint_key
    from common.application_settings import InvalidSetting, read_name
    from common.db import user_keys

    address, token = parse_address(email), mint_key()
    try:
        read = read_name(name)
    except InvalidSetting as error:
        raise OperatorError(f"--name: {error}") from error

    async def work(connection: Connection, _: Keyring) -> UserKey:
        user = await get_user(connection, address)
        made = await user_keys.add(connection, user, hash_token(token), read, Permission(permission.value), days)
        if made is None:
            raise OperatorError(f"{address} has {user_keys.MOST_OF_USER} keys, which is most: revoke one")
        return made

    made = run_in_database(work)
    print_json({"email": address, "key": token} | _key_shown(made))


@app.command()
def keys(email: Email, _: AlwaysJson = False) -> None:
    """Print a user's API keys: what they permit and when they were used, never the keys themselves."""
    from api.cli.database import run_in_database
    from common.db import user_keys

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> list[UserKey]:
        return await user_keys.list_keys(connection, (await get_user(connection, address)).id)

    print_json([_key_shown(each) for each in run_in_database(work)])


@app.command("revoke-key")
def revoke_key(
    email: Email,
    key: Annotated[str, typer.Argument(metavar="ID", help="As `frontage user keys` prints it.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a user's API key: it opens nothing from then on."""
    from api.cli.database import run_in_database
    from common.db import user_keys

    address = parse_address(email)

    async def work(connection: Connection, _: Keyring) -> str:
        name = await user_keys.revoke(connection, await get_user(connection, address), key)
        if name is None:
            raise OperatorError(f"{address} has no such key: `frontage user keys {address}` prints them")
        return name

    name = run_in_database(work)
    print_result(
        {"email": address, "id": key, "name": name}, f"the key {name} of {address} is revoked", as_json=as_json
    )


# Parts ---------------------------------------------------------------------------------------------------


async def get_user(connection: Connection, email: str) -> User:
    from common.db.users import find_user

    user = await find_user(connection, email)
    if user is None:
        raise OperatorError(f"there is no user {email}: `frontage user list` prints them")
    return user


def _key_shown(key: UserKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "permission": key.permission.value,
        "createdAt": _time(key.created_at),
        "expiresAt": _time(key.expires_at),
        "usedAt": _time(key.used_at),
    }


async def _join(connection: Connection, user: User, name: str, role: RoleOption) -> None:
    from common.db import audit, grants, users

    organisation = await users.find_organisation(connection, name)
    if organisation is None:
        organisation = await users.create_organisation(connection, name)
        await audit.record(connection, "organisation.create", name, organisation_id=organisation.id)
    await grants.give_role(connection, user, organisation.id, role.value)
    after = {"role": role.value}
    await audit.record(connection, "member.put", user.email, organisation_id=organisation.id, after=after)


def with_link(words: str, link: str | None) -> str:
    """The words, and what is left to do for a user that has gained rights."""
    if link is None:
        return words
    return f"{words}; what signed the user in before has ended. This link signs in once, within a day:\n{link}"


async def mint_link(connection: Connection, user: User) -> str:
    import os

    from common import accounts
    from common.db import sessions
    from common.settings import load

    token = accounts.mint_random_token()
    await sessions.create_link(connection, accounts.hash_token(token), user.id, sessions.LINK_LIFETIME)
    return accounts.link_of(load(os.environ).base_url, token)


async def _shown(connection: Connection, user: User) -> dict[str, Any]:
    from common.db.users import list_memberships

    return {
        "email": user.email,
        "operator": user.is_operator,
        "hasPassword": user.has_password,
        "organisations": {each.organisation.name: each.role for each in await list_memberships(connection, user.id)},
        "createdAt": _time(user.created_at),
        "lastSignInAt": _time(user.last_sign_in_at),
    }


def parse_address(email: str) -> str:
    from common.accounts import InvalidEmail, parse_email

    try:
        return parse_email(email)
    except InvalidEmail as error:
        raise OperatorError(str(error)) from error


def _hash_of_stdin() -> str:
    import sys

    return _hash(sys.stdin.readline().rstrip("\r\n"))


def _hash(password: str) -> str:
    from common.passwords import PasswordRefused, hash_password

    try:
        return hash_password(password)
    except PasswordRefused as error:
        raise OperatorError(str(error)) from error


def _time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
