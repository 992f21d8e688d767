"""What edges answer instead of forwarding: `frontage app suspend` and `resume`, and what `frontage domain block` shares
with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import application_options as options
from api.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.session import Connection
    from common.secrets import Keyring

Reason = Annotated[str, typer.Option(metavar="TEXT", help="What visitors read. At most 500 characters.")]
Legal = Annotated[bool, typer.Option("--legal", help="Answer 451 (legal reasons) instead of 403.")]


def suspend(application_id: options.Id, reason: Reason, legal: Legal = False, as_json: AsJson = False) -> None:
    """Answer every request of every domain of an application with a reason page, at every edge at once; its domains
    stay enrolled, also those that it enrols later."""
    from api.cli.database import run_in_database
    from common.db import policies

    text, status = parse_reason(reason), answer_status(legal)

    async def work(connection: Connection, _: Keyring) -> None:
        await _get(connection, application_id)
        await policies.put(connection, "application", application_id, status, text)

    run_in_database(work)
    words = f"application {application_id} is suspended: every request is answered {status} with the reason"
    print_result({"applicationId": application_id, "status": status, "reason": text}, words, as_json=as_json)


def resume(application_id: options.Id, as_json: AsJson = False) -> None:
    """End the suspension of an application: its domains are served again at once, but for names that are blocked."""
    from api.cli.database import run_in_database
    from common.db import policies

    async def work(connection: Connection, _: Keyring) -> bool:
        await _get(connection, application_id)
        return await policies.remove(connection, "application", application_id)

    if not run_in_database(work):
        raise OperatorError(f"application {application_id} is not suspended")
    words = f"application {application_id} is no longer suspended"
    print_result({"applicationId": application_id, "suspended": False}, words, as_json=as_json)


def parse_reason(text: str) -> str:
    """Return the reason that visitors read. Raises: `OperatorError`."""
    from common.db.policies import read_reason

    reason = read_reason(text)
    if reason is None:
        raise OperatorError("--reason takes 1 to 500 printable characters")
    return reason


def answer_status(is_legal: bool) -> int:
    from common.db.policies import FORBIDDEN, LEGAL

    return LEGAL if is_legal else FORBIDDEN


async def _get(connection: Connection, application_id: str) -> None:
    from common.db.applications import get_application

    if await get_application(connection, application_id) is None:
        raise OperatorError(f"there is no application {application_id}: `frontage app list` prints them")
