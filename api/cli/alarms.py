"""`frontage alarms …`: shows and releases alarms that are held back because there were too many at once.

A monitor checks a released domain once more, and sends the alarm if a record is still missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from api.cli.printing import AsJson, print_result

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from common.db.status import InstallationStatus

app = typer.Typer(help="Alarms of monitored domains that are held back.", no_args_is_help=True)

_HOURS = 1.0


@app.command()
def show(as_json: AsJson = False) -> None:
    """Print how many domains' alarms are held back, and whether the checks are healthy."""
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> InstallationStatus:
        return await services.installation.read()

    status = run_with_services(work)
    held, health = status.alarms_held, status.checks
    state = "the checks are well" if health.is_healthy else f"the checks are not well: {health.reason}"
    shown = {"held": held, "isHealthy": health.is_healthy, "reason": health.reason}
    print_result(shown, f"alarms of {held} domains are held back\n{state}", as_json=as_json)


@app.command()
def release(as_json: AsJson = False) -> None:
    """Release the alarms: every domain whose alarm is held is checked once more, now, and its owner is notified.

    For an hour from now, alarms go out whatever their number.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> int:
        return await services.operations.release_alarms(OPERATOR, for_seconds=_HOURS * 3600)

    released = run_with_services(work)
    words = f"{released} domains are checked once more; alarms that are confirmed are sent"
    print_result({"released": released}, words, as_json=as_json)
