"""`frontage audit`: every change that the API, the dashboard and commands made, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.printing import AsJson, print_json, print_list
from api.rules.audit_values import changes_in_words

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from api.services.audit import AuditPage
    from common.db.audit import AuditEntry
    from common.db.request_effects import Effect

_MOST = 1000


def audit(
    application: Annotated[str | None, typer.Option(metavar="ID", help="Of this application only.")] = None,
    subject: Annotated[
        str | None, typer.Option(help="Of this subject only: a domain, an id, a user's address, in full.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(metavar="ID", help="What this request changed: its X-Request-Id.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Actions whose name begins so: domain, webhook, application …")
    ] = None,
    actor: Annotated[str | None, typer.Option(help="By this one only: a user's address, an application's id.")] = None,
    before: Annotated[str | None, typer.Option(metavar="ENTRY", help="Older than this entry: the next page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=_MOST, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Print who changed what, when and by which way.

    With --request also what became of it: changes of the edges, the order, events and deliveries.
    """
    from api.answers.audit import request_effect
    from api.cli.services import run_with_services
    from api.schemas.audit import AuditQuery
    from api.services.audit import read_page

    async def work(services: CommandServices) -> AuditPage:
        query = AuditQuery(before, limit, subject, request, kind, actor)
        return await read_page(services.database, query, application_id=application)

    page = run_with_services(work)
    if as_json:
        shown = {"entries": [_shown(each) for each in page.entries], "next": page.next}
        print_json(shown if request is None else shown | {"caused": [request_effect(each) for each in page.caused]})
    else:
        _print_lines(page)


def _print_lines(page: AuditPage) -> None:
    lines = [*map(_entry_line, page.entries), *map(_effect_line, page.caused)]
    print_list(lines, none="the audit log has no such entry", more=page.next and f"--before {page.next}")


def _entry_line(entry: AuditEntry) -> str:
    at = f"{entry.at:%Y-%m-%d %H:%M:%S}"
    return f"{at}  {entry.way}  {entry.actor}  {entry.action}  {entry.subject}{_change(entry)}"


def _effect_line(effect: Effect) -> str:
    at = f"{effect.at:%Y-%m-%d %H:%M:%S}" if effect.at else "pending".ljust(19)
    error = f"  ({effect.error})" if effect.error else ""
    return f"{at}  {effect.kind}  {effect.subject}  {effect.state}{error}"


def _change(entry: AuditEntry) -> str:
    parts = [
        f"{each.name}: {each.before or 'none'} → {each.after or 'none'}"
        for each in changes_in_words(entry.before, entry.after)
    ]
    return f"  ({', '.join(parts)})" if parts else ""


def _shown(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": entry.at.isoformat(),
        "way": entry.way,
        "actor": entry.actor,
        "requestId": entry.request_id,
        "applicationId": entry.application_id,
        "action": entry.action,
        "subject": entry.subject,
        "before": entry.before,
        "after": entry.after,
    }
