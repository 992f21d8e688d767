"""`frontage organisation …`: organisations, whose members see their applications in the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AlwaysJson, AsJson, print_json, print_result
from api.cli.users import RoleOption, with_link

if TYPE_CHECKING:
    from common.db.users import Organisation

app = typer.Typer(help="Organisations: whose members see which applications.", no_args_is_help=True)

_LIST_AT_ONCE = 1000

Name = Annotated[str, typer.Argument(metavar="ORGANISATION", help="Its name or id.")]
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's e-mail address.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it.")], _: AlwaysJson = False
) -> None:
    """Make an organisation, and print its id."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> Organisation:
        return await services.organisations.create(OPERATOR, name)

    made = run_with_services(work)
    print_json({"organisationId": made.id, "name": made.name})


@app.command("list")
def list_(_: AlwaysJson = False) -> None:
    """Print all organisations with their members."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR
    from common.db.users import MOST_MEMBERS

    async def work(services: CommandServices) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        after = ""
        while page := await services.organisations.list_part(OPERATOR, after=after, most=_LIST_AT_ONCE):
            for each in page:
                found = await services.organisations.list_members(each, after="", most=MOST_MEMBERS)
                members = {member.user.email: member.role for member in found}
                shown.append({"organisationId": each.id, "name": each.name, "members": members})
            after = page[-1].name
        return shown

    print_json(run_with_services(work))


@app.command("add-member")
def add_member(
    name: Name,
    email: Email,
    role: Annotated[RoleOption, typer.Option(help="What the user may do.")] = RoleOption.DEVELOPER,
    as_json: AsJson = False,
) -> None:
    """Let a user see the organisation's applications, or change the user's role; a user that is missing is made.

    A user that is new or gains rights has to sign in by the link that is printed: all else that signed the user in
    ends.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> str | None:
        organisation = await services.organisations.find_named(OPERATOR, name)
        return await services.organisations.put_member(OPERATOR, organisation, email, role.value)

    link = run_with_services(work)
    shown = {"organisation": name, "email": email, "role": role.value, "signInOnce": link}
    print_result(shown, with_link(f"{email} is {role.value} of {name}", link), as_json=as_json)


@app.command("remove-member")
def remove_member(name: Name, email: Email, as_json: AsJson = False) -> None:
    """End a user's membership. An organisation keeps an owner: its only one stays until another is made."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> None:
        organisation = await services.organisations.find_named(OPERATOR, name)
        user = await services.users.find(OPERATOR, email)
        await services.organisations.remove_member(OPERATOR, organisation, user.id)

    run_with_services(work)
    shown = {"organisation": name, "email": email, "role": None}
    print_result(shown, f"{email} is no longer a member of {name}", as_json=as_json)
