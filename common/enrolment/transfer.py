"""Moves a name to another application by hand, whatever the DNS proves: for the command line and the dashboard."""

from __future__ import annotations

from common.db import certificates, domains, ownership
from common.db.applications import Application
from common.db.domains import NewDomain
from common.db.session import Connection
from common.domain_settings import DomainSettings
from common.enrolment import changes
from common.errors import FrontageError
from common.names import DomainName


class NotTransferable(FrontageError):
    """The reason, as the end of a sentence or a sentence of its own."""


class NoOrigin(NotTransferable):
    """Neither an origin was given, nor has the application one of its own."""


async def transfer(
    connection: Connection, name: DomainName, application: Application, url: str | None, *, holder: str | None = None
) -> str:
    """Give the name to the application; it keeps its products and nothing else. Needs a transaction.

    `url`: the origin, without one the application's. `holder`: the application that must hold the name, if not any.
    Returns the holder so far. Raises: `NotTransferable`.
    """
    await certificates.lock_domain(connection, name.text)
    held = await domains.find(connection, name.text)
    if not held or holder not in (None, held[0].application_id):
        raise NotTransferable(f"{name} is not enrolled: application {application.id} can enrol it itself")
    former = held[0].application_id
    if former == application.id:
        raise NotTransferable(f"{name} is application {application.id}'s already")
    if application.deleting_at is not None:
        raise NotTransferable(f"application {application.id} is being deleted")
    if (await ownership.find_standing(connection, name, application.id)).is_own_target:
        raise NotTransferable(f"{name} is a cname target of application {application.id}")
    url = url or application.application_url
    if url is None:
        raise NoOrigin(f"application {application.id} has no origin of its own")
    await changes.revoke_ownership(connection, name.text, former, "moved")
    settings = DomainSettings(url)
    new = [NewDomain(name.text, product, settings) for product in sorted(each.product for each in held)]
    await changes.enrol_by_hand(connection, application.id, new)
    return former
