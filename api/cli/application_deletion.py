"""Deleting an application from the command line: what it has is shown, confirmed, and removed in short transactions."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from api.cli.services import CommandServices
from api.rights import OPERATOR
from common.db import application_removal as removal
from common.db.application_removal import Extent
from common.db.pool import Database


async def delete_application(
    services: CommandServices, application_id: str, confirm: Callable[[str], None]
) -> dict[str, int]:
    """Delete the application, and return how many rows were removed, by kind.

    `confirm` is called with what will be gone, and raises to stop.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    application = await services.application(application_id)
    async with services.database.connection() as connection:
        extent = await removal.measure(connection, application_id)
    confirm(_describe(application.name, application_id, extent))
    await services.applications.begin_removal(OPERATOR, application_id)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        return await _remove_all(services.database, application_id, extent, progress)


async def _remove_all(database: Database, application_id: str, extent: Extent, progress: Progress) -> dict[str, int]:
    totals = {"domains": extent.domains, "monitored domains": extent.monitored_domains}
    tasks = {stage.words: progress.add_task(stage.words, total=totals.get(stage.words)) for stage in removal.STAGES}

    def show(stage: removal.RemovalStage, removed: int) -> None:
        progress.update(tasks[stage.words], completed=removed)

    removed = await removal.remove_all(database, application_id, show)
    for words, count in removed.items():
        progress.update(tasks[words], total=count)
    return removed


def _describe(name: str, application_id: str, extent: Extent) -> str:
    lines = [f"Application {application_id} ({name})"]
    if extent.domains:
        some = ", ".join(extent.first_domains) + (", …" if extent.domains > len(extent.first_domains) else "")
        lines.append(f"  {extent.domains:,} domains stop being served at once, and lose their certificates: {some}")
    else:
        lines.append("  no domain is served for it")
    lines.append(f"  {extent.monitored_domains:,} monitored domains are no longer checked")
    lines.append(f"  {extent.pending_deliveries:,} pending webhook deliveries are not sent")
    lines.append("  its secrets and tokens stop working")
    return "\n".join(lines)
