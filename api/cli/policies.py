"""Print and set what edges answer instead of forwarding.

`frontage app suspend` and `resume`, and what `frontage domain block` shares with them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli import application_options as options
from api.cli.printing import AsJson, print_result

Reason = Annotated[str, typer.Option(metavar="TEXT", help="What visitors read. At most 500 characters.")]
Legal = Annotated[bool, typer.Option("--legal", help="Answer 451 (legal reasons) instead of 403.")]


def suspend(application_id: options.Id, reason: Reason, legal: Legal = False, as_json: AsJson = False) -> None:
    """Answer every request of every domain of an application with a reason page, at every edge at once.

    Its domains stay enrolled, also those that it enrols later.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> int:
        application = await services.application(application_id)
        return await services.operations.suspend(OPERATOR, application, reason, is_legal=legal)

    status = run_with_services(work)
    words = f"application {application_id} is suspended: every request is answered {status} with the reason"
    shown = {"applicationId": application_id, "status": status, "reason": shown_reason(reason)}
    print_result(shown, words, as_json=as_json)


def resume(application_id: options.Id, as_json: AsJson = False) -> None:
    """End the suspension of an application: its domains are served again at once, but for names that are blocked."""
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> None:
        await services.operations.resume(OPERATOR, await services.application(application_id))

    run_with_services(work)
    words = f"application {application_id} is no longer suspended"
    print_result({"applicationId": application_id, "suspended": False}, words, as_json=as_json)


def shown_reason(text: str) -> str | None:
    """Return the reason as visitors read it."""
    from common.db.policies import read_reason

    return read_reason(text)
