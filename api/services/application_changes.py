"""Changes of applications, each with its entry in the audit log, for the API, the dashboard and the command line.

Each function is one use case, in the transaction that the caller opens; who may do it is the caller's to decide.
Secrets are `api.services.application_secrets`'.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Unpack

from common.db import application_removal, applications, audit, error_pages
from common.db.applications import Application, ApplicationChanges, NewApplication, TargetLoss, settings_of
from common.db.session import Connection
from common.db.target_contests import TargetContest
from common.enrolment import changes as enrolment_changes


async def create(connection: Connection, new: NewApplication) -> Application:
    """Make the application. Raises: `CnameTargetTaken`."""
    stored = await applications.create_application(connection, new)
    made = stored.application
    await _record_losses(connection, stored.losses)
    await audit.record(connection, "application.create", made.id, application_id=made.id, after=settings_of(made))
    return made


async def change(
    connection: Connection,
    application_id: str,
    *,
    proven: Collection[TargetContest] = (),
    **changes: Unpack[ApplicationChanges],
) -> Application | None:
    """Change settings, and return the application as it now is, or None where there is none.

    With the contests in `proven`, cname targets move here.

    Raises: `CnameTargetTaken`.
    """
    before = await applications.get_application(connection, application_id)
    if before is None or not changes:
        return before
    stored = await applications.update_application(connection, application_id, proven=proven, **changes)
    if stored is None:
        return None
    await _record_losses(connection, stored.losses)
    differences = settings_of(before), settings_of(stored.application)
    await audit.record_difference(connection, "application.set", application_id, *differences, application_id)
    return stored.application


async def _record_losses(connection: Connection, losses: Sequence[TargetLoss]) -> None:
    """Record, for their owners, what other applications lost to this one."""
    for loss in losses:
        rival = loss.contest.rival
        if loss.settings is None:
            await enrolment_changes.record_loss(connection, loss.contest.target, rival, "moved")
        else:
            before, after = map(settings_of, loss.settings)
            await audit.record_difference(connection, "application.target_lost", rival, before, after, rival)


async def set_error_page(connection: Connection, application_id: str, html: str | None) -> None:
    """Have the edges answer browsers with this page in place of ours, or, with None, with ours again."""
    if html is not None:
        await error_pages.put_error_page(connection, application_id, html)
    elif not await error_pages.remove_error_page(connection, application_id):
        return
    after = {"bytes": len((html or "").encode())}
    await audit.record(connection, "application.error_page", application_id, application_id=application_id, after=after)


async def begin_removal(connection: Connection, application_id: str) -> None:
    """Begin to delete the application: its tokens open nothing from then on (`common.db.application_removal`)."""
    targets = await application_removal.begin(connection, application_id)
    if targets is not None:
        before = {"cname_targets": targets}
        await audit.record(
            connection, "application.delete", application_id, application_id=application_id, before=before
        )
