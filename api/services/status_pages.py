"""The page that shows a partner's customer how one domain is: its link, and its content.

The page shows what the database has of one domain. It asks neither the DNS nor an origin, because every holder of the
link may open it, as often as the rate limit lets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from api.errors import NOT_ENROLLED, NOT_FOUND, Refused
from api.services.preparations import PreparationService, RecordToSet
from common.db import applications, audit, domains, policies, preparations, status_links
from common.db.applications import Application
from common.db.domains import Domain
from common.db.pool import Database
from common.db.session import Connection
from common.db.status_links import LIFETIME_DAYS, StatusLink
from common.names import DomainName, parse_enrollable

StatusWord: TypeAlias = Literal["live", "securing", "elsewhere", "paused", "waiting", "ended"]
"""``securing``: the certificate is on its way; ``elsewhere``: the DNS has left; ``paused``: by an operator or by
maintenance; ``waiting``: prepared, and the DNS does not lead here yet; ``ended``: the application does not have it."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{32}")


@dataclass(frozen=True, slots=True)
class DomainStatus:
    """The page's content; `partner` is the application's name, `records` are those to set now."""

    link: StatusLink
    domain: DomainName
    partner: str
    word: StatusWord
    records: Sequence[RecordToSet]


class StatusPages:
    """Makes, opens and revokes links to the page. One instance per process."""

    def __init__(self, database: Database, prepared: PreparationService, base_url: str) -> None:
        self._database = database
        self._prepared = prepared
        self._base_url = base_url

    def url(self, link: StatusLink) -> str:
        """Return the address of the page behind a link."""
        return f"{self._base_url}/status/{link.id}"

    async def make(self, application: Application, name: DomainName, days: int | None = None) -> StatusLink:
        """Make the link to a domain's page, for `days`, and end the former one. Raises: `Refused`."""
        async with self._database.transaction() as connection:
            held = await _held(connection, application.id, name)
            if not held and await preparations.find(connection, name.text, application.id) is None:
                raise Refused(NOT_ENROLLED, hint="a link can be made for a domain that is enrolled or prepared")
            link = await status_links.put(connection, application.id, name.text, days=days or LIFETIME_DAYS)
            await audit.record(
                connection,
                "domain.status_link",
                name.text,
                application_id=application.id,
                after={"expires_at": link.expires_at.isoformat()},
            )
        return link

    async def find(self, application: Application, name: DomainName) -> StatusLink:
        """Return the link of a domain that was made last. Raises: `Refused` where there is none."""
        async with self._database.connection() as connection:
            link = await status_links.find(connection, application.id, name.text)
        if link is None:
            raise _no_link(name)
        return link

    async def revoke(self, application: Application, name: DomainName) -> None:
        """End the link of a domain: its page is gone at once. Raises: `Refused` where there is none."""
        async with self._database.transaction() as connection:
            if not await status_links.revoke(connection, application.id, name.text):
                raise _no_link(name)
            await audit.record(connection, "domain.status_link_end", name.text, application_id=application.id)

    async def open(self, link_id: str) -> DomainStatus | None:
        """Return what the page shows; None for a link that is not whole, or has ended."""
        if not _ID.fullmatch(link_id):
            return None
        async with self._database.connection() as connection:
            link = await status_links.get(connection, link_id)
            application = await applications.get_application(connection, link.application_id) if link else None
            if link is None or application is None or application.deleting_at is not None:
                return None
            name = parse_enrollable(link.domain)
            held = await _held(connection, application.id, name)
            preparation = await preparations.find(connection, name.text, application.id)
            policy = await policies.find_in_force(connection, name.text, application.id)
        is_waiting = preparation is not None and preparation.state != "active"
        word = _word(held, is_paused=policy is not None or application.maintenance, is_waiting=is_waiting)
        records: Sequence[RecordToSet] = ()
        if word == "waiting" and preparation is not None:
            records = await self._prepared.records(application, preparation)
        elif word == "elsewhere":
            records = self._prepared.leading_records(application, name, held[0].product, "missing")
        return DomainStatus(link, name, application.name, word, [each for each in records if each.state == "missing"])


async def _held(connection: Connection, application_id: str, name: DomainName) -> list[Domain]:
    return [each for each in await domains.find(connection, name.text) if each.application_id == application_id]


def _no_link(name: DomainName) -> Refused:
    return Refused(NOT_FOUND, code="link_not_found", hint=f"POST /domains/{name}/status-link makes one")


def _word(held: list[Domain], *, is_paused: bool, is_waiting: bool) -> StatusWord:
    if not held:
        return "waiting" if is_waiting else "ended"
    if is_paused:
        return "paused"
    if any(each.status == "active" and each.certificate == "live" for each in held):
        return "live"
    if is_waiting:
        return "waiting"
    return "elsewhere" if any(each.departed_at is not None for each in held) else "securing"
