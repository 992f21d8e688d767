"""`frontage certificate list|replace`: the certificates of the installation, and many of them replaced at once.

Monitors do the work; `replace` stores the request, and shows how far it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AsJson, make_console, print_json, print_list
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from common.db.replacements import ListedCertificate

IssuerOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of this authority: its name in certificates, or a CA's directory.")
]
BeforeOption = Annotated[
    str | None, typer.Option(metavar="DATE", help="Valid from a time before this one, UTC: 2026-11-20, or with a time.")
]

_PROGRESS_SECONDS = 0.5
_LARGEST_PAGE = 10_000


def list_(
    issuer: IssuerOption = None,
    serial: Annotated[
        list[str] | None, typer.Option(metavar="SERIAL", help="This serial number, in hexadecimal. Repeat.")
    ] = None,
    before: BeforeOption = None,
    after: Annotated[
        str | None, typer.Option(metavar="PAGE", help="The next page, as the one before printed it.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=_LARGEST_PAGE, help="How many at most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Print the certificates in service, oldest first: first day, last day, serial number, authority, domain.

    Partners' own are not among them.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.services.replacements import read_serial
    from common.db.replacements import Selection

    start = None
    if after is not None:
        at, _, name = after.partition(",")
        start = _required_date(at), name

    async def work(services: CommandServices) -> list[ListedCertificate]:
        serials = [read_serial(each) for each in serial] if serial else None
        selection = Selection(issuer, serials, _date(before))
        return await services.replacements.list_page(OPERATOR, selection, after=start, limit=limit)

    found = run_with_services(work)
    page = f"{found[-1].not_before.isoformat()},{found[-1].domain}" if len(found) == limit else None
    if as_json:
        print_json({"certificates": [_listed(each) for each in found], "next": page})
        return
    print_list(list(map(_line, found)), none="no certificate in service matches", more=page and f"--after {page}")


def replace(
    issuer: IssuerOption = None,
    serials: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serial numbers in hexadecimal, one a line, as CAs list them.")
    ] = None,
    before: BeforeOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many it would be.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replace many certificates, after a CA has revoked them or has to, and show how far that is.

    Fairly between applications, within the CA's limits, and before routine renewals. Ctrl-C ends the command alone; the
    same command goes on to show how far it is, and replaces none twice.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.services.replacements import read_serials
    from common.db.replacements import Selection

    listed = None if serials is None else read_file(serials).splitlines()

    async def work(services: CommandServices) -> dict[str, Any]:
        service = services.replacements
        numbers = None if listed is None else read_serials(listed)
        selection = Selection(issuer, numbers, _date(before))
        if dry_run:
            return {"selected": await service.count(OPERATOR, selection), "requested": 0, "left": None}
        requested = 0
        async for more in service.replace(OPERATOR, selection):
            requested += more
        if not as_json:
            await _follow(services, requested)
        return {"selected": requested, "requested": requested, "left": await service.count_requested(OPERATOR)}

    done = run_with_services(work)
    if as_json:
        print_json(done)
    elif dry_run:
        typer.echo(f"{done['selected']:,} certificates would be replaced")
    else:
        left = f"{done['left']:,} certificates wait" if done["left"] else "none waits"
        typer.echo(f"{done['requested']:,} replacements were requested now, and {left}")


async def _follow(services: CommandServices, requested: int) -> None:
    """Show a bar, or lines where there is no terminal, until no certificate waits to be replaced."""
    import asyncio

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from api.cli.database import warn_without_issuer
    from api.rights import OPERATOR

    async with services.database.connection() as connection:
        await warn_without_issuer(connection)
    total = left = await services.replacements.count_requested(OPERATOR)
    columns = (
        TextColumn("replaced"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=make_console()) as bar:
        task = bar.add_task("", total=max(total, requested))
        while left:
            notice = (await services.installation.read_progress()).notice or ""
            bar.update(task, total=max(total, requested), completed=max(total, requested) - left, description=notice)
            await asyncio.sleep(_PROGRESS_SECONDS)
            left = await services.replacements.count_requested(OPERATOR)
            total = max(total, left)
        bar.update(task, completed=max(total, requested), description="")


def _date(text: str | None) -> datetime | None:
    return None if text is None else _required_date(text)


def _required_date(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise OperatorError(f"{text!r} is no date such as 2026-11-20, or time such as 2026-11-20T14:00Z") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _line(each: ListedCertificate) -> str:
    dates = f"{each.not_before:%Y-%m-%d}  {each.not_after:%Y-%m-%d}"
    to_replace = "  (to be replaced)" if each.replace_requested_at else ""
    return f"{dates}  {each.serial or 'unknown'}  {each.authority or each.issuer}  {each.domain}{to_replace}"


def _listed(each: ListedCertificate) -> dict[str, Any]:
    return {
        "domain": each.domain,
        "applicationId": each.application_id,
        "serial": each.serial,
        "issuer": each.authority,
        "source": each.issuer,
        "notBefore": _moment(each.not_before),
        "notAfter": _moment(each.not_after),
        "replaceRequestedAt": _moment(each.replace_requested_at),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def read_file(path: Path) -> str:
    """Return the text of a file. Raises: `OperatorError`."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no text'}") from error
