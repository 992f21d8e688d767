"""Certificates of the installation, listed, and many of them replaced at once, by an operator."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime

from api.errors import Refused, invalid_parameter
from api.rights import Rights
from common.accounts import Permission
from common.db import audit, replacements
from common.db.pool import Database
from common.db.replacements import ListedCertificate, Selection

_AT_ONCE = 200
_SERIALS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ReplacementService:
    """Lists and replaces certificates, with an operator's rights. One instance per process or command."""

    database: Database

    async def list_page(
        self, rights: Rights, selection: Selection, *, after: tuple[datetime, str] | None, limit: int
    ) -> list[ListedCertificate]:
        """Return certificates in service, oldest first, from the one after `after` on. Raises: `Refused`."""
        rights.require_operator(Permission.VIEW)
        async with self.database.connection() as connection:
            return await replacements.list_certificates(connection, selection, after=after, limit=limit)

    async def count(self, rights: Rights, selection: Selection) -> int:
        """Count what `replace` would request. Raises: `Refused`."""
        rights.require_operator(Permission.VIEW)
        _require_bound(selection)
        async with self.database.connection() as connection:
            return sum([await replacements.count(connection, each) for each in _parts(selection)])

    async def replace(self, rights: Rights, selection: Selection) -> AsyncIterator[int]:
        """Request the replacement of all that are selected; yield how many more are requested. Raises: `Refused`.

        May be broken off and repeated: what is requested is replaced, and what has been is not selected any more.
        """
        rights.require_operator(Permission.OWN)
        _require_bound(selection)
        described = {
            "issuer": selection.issuer,
            "serials": None if selection.serials is None else len(selection.serials),
            "before": selection.before and selection.before.isoformat(),
        }
        async with self.database.transaction() as connection:
            await audit.record(connection, "certificate.replace", "certificates", after=described)
        for part in _parts(selection):
            while True:
                async with self.database.transaction() as connection:
                    requested = await replacements.request(connection, part, most=_AT_ONCE)
                yield requested
                if requested < _AT_ONCE:
                    break

    async def count_requested(self, rights: Rights) -> int:
        """Count the certificates that are still to be replaced. Raises: `Refused`."""
        rights.require_operator(Permission.VIEW)
        async with self.database.connection() as connection:
            return await replacements.count_requested(connection)


def read_serial(text: str) -> str:
    """Return a serial number as certificates are found by: hexadecimal, however it is written. Raises: `Refused`."""
    digits = re.sub(r"[\s:]", "", text).lower().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{1,64}", digits):
        hint = f"{text[:80]!r} is no serial number in hexadecimal, such as 04:a3:1f or 0x4a31f"
        raise Refused(invalid_parameter("serials"), hint=hint)
    return digits.lstrip("0") or "0"


def read_serials(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the serial numbers of a file: one a line, the first word of it. Raises: `Refused`."""
    words = (line.replace(",", " ").split() for line in lines)
    return tuple(dict.fromkeys(read_serial(each[0]) for each in words if each and not each[0].startswith("#")))


def _require_bound(selection: Selection) -> None:
    """Refuse a selection that would match its own replacements, or everything, when it is repeated."""
    if selection.serials is None and selection.before is None:
        hint = (
            "give --serials, or --before with the first day whose certificates stay: repeated, it replaces none twice"
        )
        raise Refused(invalid_parameter("before"), hint=hint)


def _parts(selection: Selection) -> Iterable[Selection]:
    """Return selections that Postgres can match at once."""
    if selection.serials is None:
        return [selection]
    serials = list(selection.serials)
    return [
        Selection(selection.issuer, serials[start : start + _SERIALS_AT_ONCE], selection.before)
        for start in range(0, len(serials), _SERIALS_AT_ONCE)
    ]
