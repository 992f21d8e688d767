"""`frontage user …`: the people who sign in to the dashboard."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AlwaysJson, AsJson, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.passkeys import Passkey
    from common.db.user_keys import UserKey
    from common.db.users import Membership, User

app = typer.Typer(help="Users of the dashboard.", no_args_is_help=True)

_LIST_AT_ONCE = 1000

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's e-mail address.")]


class RoleOption(StrEnum):
    """A role in an organisation."""

    OWNER = "owner"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class PermissionOption(StrEnum):
    """What an API key permits at most."""

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
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR
    from api.services.users import NewUser

    if not operator and organisation is None:
        raise OperatorError("give the organisation that the user belongs to (--organisation), or --operator")
    new = NewUser(email, operator, organisation, role.value, _hash_of_stdin() if password_stdin else None)

    async def work(services: CommandServices) -> tuple[User, str]:
        return await services.users.create(OPERATOR, new)

    user, link = run_with_services(work)
    print_json({"email": user.email, "operator": operator, "signInOnce": link})


@app.command("list")
def list_(_: AlwaysJson = False) -> None:
    """Print all users, with their organisations and roles."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        after = ""
        while page := await services.users.list_part(OPERATOR, after=after, most=_LIST_AT_ONCE):
            shown += [_shown(user, memberships) for user, memberships in page]
            after = page[-1][0].email
        return shown

    print_json(run_with_services(work))


@app.command("set-password")
def set_password(
    email: Email,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read it from standard input.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set a user's password, and end the user's sessions."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    password_hash = _hash_of_stdin() if password_stdin else _hash(typer.prompt("Password", hide_input=True, err=True))

    async def work(services: CommandServices) -> User:
        return await services.users.set_password(OPERATOR, email, password_hash)

    user = run_with_services(work)
    words = f"the password of {user.email} is set; the user's sessions have ended"
    print_result({"email": user.email, "hasPassword": True}, words, as_json=as_json)


@app.command()
def link(email: Email, as_json: AsJson = False) -> None:
    """Print a link that signs the user in once, within a day. It replaces the user's link so far."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> tuple[User, str]:
        return await services.users.make_link(OPERATOR, email)

    user, made = run_with_services(work)
    print_result({"email": user.email, "signInOnce": made}, made, as_json=as_json)


@app.command()
def operator(
    email: Email,
    off: Annotated[bool, typer.Option("--off", help="Take the right away.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a user see and change every application.

    A new operator has to sign in by the link that is printed: all else that signed the user in ends.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> tuple[User, str | None]:
        return await services.users.set_operator(OPERATOR, email, is_operator=not off)

    user, link = run_with_services(work)
    words = with_link(f"{user.email} is {'no longer an' if off else 'an'} operator", link)
    print_result({"email": user.email, "operator": not off, "signInOnce": link}, words, as_json=as_json)


@app.command("sign-out")
def sign_out(email: Email, as_json: AsJson = False) -> None:
    """End all sessions and links of a user."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> tuple[User, int]:
        return await services.users.end_sessions(OPERATOR, email)

    user, ended = run_with_services(work)
    words = f"sessions of {user.email} that have ended: {ended}"
    print_result({"email": user.email, "ended": ended}, words, as_json=as_json)


@app.command()
def delete(email: Email, as_json: AsJson = False) -> None:
    """Delete a user, with all sessions. An organisation keeps an owner: its only one stays until another is made."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> User:
        return await services.users.delete(OPERATOR, email)

    user = run_with_services(work)
    print_result({"email": user.email, "deleted": True}, f"{user.email} is deleted", as_json=as_json)


@app.command()
def passkeys(email: Email, _: AlwaysJson = False) -> None:
    """Print a user's passkeys."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> list[Passkey]:
        return await services.users.list_passkeys(OPERATOR, email)

    print_json(
        [
            {"id": each.id, "name": each.name, "createdAt": _time(each.created_at), "usedAt": _time(each.used_at)}
            for each in run_with_services(work)
        ]
    )


@app.command("remove-passkey")
def remove_passkey(
    email: Email,
    passkey: Annotated[str, typer.Argument(metavar="ID", help="As `frontage user passkeys` prints it.")],
    as_json: AsJson = False,
) -> None:
    """Remove a user's passkey, such as one of a lost device, and end the user's sessions."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    try:
        credential_id = bytes.fromhex(passkey)
    except ValueError as error:
        raise OperatorError(f"{passkey[:100]!r} is no id of a passkey") from error

    async def work(services: CommandServices) -> tuple[User, str]:
        return await services.users.remove_passkey(OPERATOR, email, credential_id)

    user, name = run_with_services(work)
    words = f"the passkey {name} of {user.email} is removed; the user's sessions have ended"
    print_result({"email": user.email, "passkey": passkey, "name": name}, words, as_json=as_json)


@app.command()
def unbind(email: Email, as_json: AsJson = False) -> None:
    """Forget which account of the OpenID provider is the user's, and end the user's sessions.

    The next account that signs in with the user's verified address is the user's from then on.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> tuple[User, int]:
        return await services.users.unbind(OPERATOR, email)

    user, count = run_with_services(work)
    words = f"{user.email} is bound to no account of the provider" + (" any more" if count else "; it was to none")
    print_result({"email": user.email, "unbound": count}, words, as_json=as_json)


@app.command("create-key")
def create_key(
    email: Email,
    name: Annotated[str, typer.Option(help="What the key is for.")],
    permission: Annotated[PermissionOption, typer.Option(help="What it permits at most.")] = PermissionOption.VIEW,
    days: Annotated[int, typer.Option(min=1, max=365, help="After how many days it expires.")] = 90,
    application: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The only application that it opens; without one, all of the user's."),
    ] = None,
    _: AlwaysJson = False,
) -> None:
    """Make an API key for a user, and print it: it is shown this once.

    It opens what the user may do, up to the permission.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR
    from api.services.credentials import MadeKey
    from common.accounts import Permission

    async def work(services: CommandServices) -> tuple[User, MadeKey]:
        wanted = Permission(permission.value)
        return await services.users.make_key(OPERATOR, email, name, wanted, days, application)

    user, made = run_with_services(work)
    print_json({"email": user.email, "key": made.token} | _key_shown(made.key))


@app.command()
def keys(email: Email, _: AlwaysJson = False) -> None:
    """Print a user's API keys: what they permit and when they were used, never the keys themselves."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> list[UserKey]:
        return await services.users.list_keys(OPERATOR, email)

    print_json([_key_shown(each) for each in run_with_services(work)])


@app.command("revoke-key")
def revoke_key(
    email: Email,
    key: Annotated[str, typer.Argument(metavar="ID", help="As `frontage user keys` prints it.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a user's API key: it opens nothing from then on."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> tuple[User, str]:
        return await services.users.revoke_key(OPERATOR, email, key)

    user, name = run_with_services(work)
    words = f"the key {name} of {user.email} is revoked"
    print_result({"email": user.email, "id": key, "name": name}, words, as_json=as_json)


# Parts ---------------------------------------------------------------------------------------------------


def _key_shown(key: UserKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "permission": key.permission.value,
        "applicationId": key.application_id,
        "createdAt": _time(key.created_at),
        "expiresAt": _time(key.expires_at),
        "usedAt": _time(key.used_at),
    }


def with_link(words: str, link: str | None) -> str:
    """Return the words, and what is left to do for a user that has gained rights."""
    if link is None:
        return words
    return f"{words}; what signed the user in before has ended. This link signs in once, within a day:\n{link}"


def _shown(user: User, memberships: list[Membership]) -> dict[str, Any]:
    return {
        "email": user.email,
        "operator": user.is_operator,
        "hasPassword": user.has_password,
        "organisations": {each.organisation.name: each.role for each in memberships},
        "createdAt": _time(user.created_at),
        "lastSignInAt": _time(user.last_sign_in_at),
    }


def _hash_of_stdin() -> str:
    import sys

    return _hash(sys.stdin.readline().rstrip("\r\n"))


def _hash(password: str) -> str:
    from api.rules.passwords import PasswordRefused, hash_password

    try:
        return hash_password(password)
    except PasswordRefused as error:
        raise OperatorError(str(error)) from error


def _time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
