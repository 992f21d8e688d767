"""`frontage organisation …`: organisations, whose members see their applications in the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AlwaysJson, AsJson, print_json, print_result
from api.cli.users import RoleOption, get_user, mint_link, parse_address, with_link
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.session import Connection
    from common.db.users import Member, Organisation, User
    from common.secrets import Keyring

app = typer.Typer(help="Organisations: whose members see which applications.", no_args_is_help=True)

_LIST_AT_ONCE = 1000

Name = Annotated[str, typer.Argument(metavar="ORGANISATION", help="Its name or id.")]
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's e-mail address.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it.")], _: AlwaysJson = False
) -> None:
    """Make an organisation, and print its id."""
    from api.cli.database import run_in_database
    from common.db import audit, users

    if not name.strip():
        raise OperatorError("an organisation has a name")

    async def work(connection: Connection, _: Keyring) -> Organisation:
        try:
            made = await users.create_organisation(connection, name.strip())
        except users.AlreadyExists as error:
            raise OperatorError(str(error)) from error
        await audit.record(connection, "organisation.create", made.name, organisation_id=made.id)
        return made

    made = run_in_database(work)
    print_json({"organisationId": made.id, "name": made.name})


@app.command("list")
def list_(_: AlwaysJson = False) -> None:
    """Print all organisations with their members."""
    from api.cli.database import run_in_database
    from common.db import users

    async def work(connection: Connection, _: Keyring) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        after = ""
        while page := await users.list_organisations(connection, after=after, most=_LIST_AT_ONCE):
            for each in page:
                members = {member.user.email: member.role for member in await users.list_members(connection, each.id)}
                shown.append({"organisationId": each.id, "name": each.name, "members": members})
            after = page[-1].name
        return shown

    print_json(run_in_database(work))


@app.command("add-member")
def add_member(
    name: Name,
    email: Email,
    role: Annotated[RoleOption, typer.Option(help="What the user may do.")] = RoleOption.DEVELOPER,
    as_json: AsJson = False,
) -> None:
    """Let a user see the organisation's applications, or change the user's role.

    A user that gains rights by it has to sign in by the link that is printed: all else that signed the user in ends.
    """
    from api.cli.database import run_in_database
    from common.db import audit, grants, users

    async def work(connection: Connection, _: Keyring) -> str | None:
        organisation, user = await _find(connection, name), await _user(connection, email)
        member = await users.get_member(connection, organisation.id, user.id)
        if member is not None and role is not RoleOption.OWNER:
            await _refuse_last_owner(connection, organisation, member)
        has_gained = await grants.give_role(connection, user, organisation.id, role.value)
        before = None if member is None else {"role": member.role}
        after = {"role": role.value}
        await audit.record(
            connection, "member.put", user.email, organisation_id=organisation.id, before=before, after=after
        )
        return await mint_link(connection, user) if has_gained else None

    link = run_in_database(work)
    shown = {"organisation": name, "email": email, "role": role.value, "signInOnce": link}
    print_result(shown, with_link(f"{email} is {role.value} of {name}", link), as_json=as_json)


@app.command("remove-member")
def remove_member(name: Name, email: Email, as_json: AsJson = False) -> None:
    """End a user's membership. An organisation keeps an owner: its only one stays until another is made."""
    from api.cli.database import run_in_database
    from common.db import audit, users

    async def work(connection: Connection, _: Keyring) -> None:
        organisation, user = await _find(connection, name), await _user(connection, email)
        member = await users.get_member(connection, organisation.id, user.id)
        if member is None:
            raise OperatorError(f"{user.email} is no member of {organisation.name}")
        await _refuse_last_owner(connection, organisation, member)
        await users.remove_membership(connection, user.id, organisation.id)
        before = {"role": member.role}
        await audit.record(connection, "member.remove", user.email, organisation_id=organisation.id, before=before)

    run_in_database(work)
    shown = {"organisation": name, "email": email, "role": None}
    print_result(shown, f"{email} is no longer a member of {name}", as_json=as_json)


# Parts ---------------------------------------------------------------------------------------------------


async def _find(connection: Connection, name: str) -> Organisation:
    from common.db.users import find_organisation

    found = await find_organisation(connection, name)
    if found is None:
        raise OperatorError(f"there is no organisation {name}: `frontage organisation list` prints them")
    return found


async def _refuse_last_owner(connection: Connection, organisation: Organisation, member: Member) -> None:
    """Raises: `OperatorError` where the organisation would be without an owner."""
    from common.db import users

    try:
        await users.refuse_last_owner(connection, organisation.id, member)
    except users.LastOwner as error:
        raise OperatorError(f"{organisation.name}: {error}") from error


async def _user(connection: Connection, email: str) -> User:
    return await get_user(connection, parse_address(email))
