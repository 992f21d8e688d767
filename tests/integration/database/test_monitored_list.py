"""Any page of the list of monitored domains is the one that walking the rows would give."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest

from common.db import monitored_domains
from common.db.pool import Database
from tests.integration.monitor.parts import APPLICATION, OTHER_APPLICATION, add_application

_FIRST = datetime(2026, 2, 27, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(3))
async def test_pages_are_what_walking_the_rows_would_give(database: Database, seed: int) -> None:
    chance = Random(seed)
    for application in (APPLICATION, OTHER_APPLICATION):
        await add_application(database, application)
    rows = [(f"m{number:03d}", _moment(chance)) for number in chance.sample(range(1000), 120)]
    gone = chance.sample(rows, 40)
    async with database.transaction() as connection:
        for application in (APPLICATION, OTHER_APPLICATION):
            await connection.executemany(
                "insert into monitored_domains (id, application_id, domain, dns_records, date_added)"
                " values ($1 || $2, $2, $1 || '.test', '[]', $3)",
                [(name, application, moment) for name, moment in rows],
            )
        await connection.execute(
            "delete from monitored_domains where domain = any($1) and application_id = $2",
            [f"{name}.test" for name, _ in gone],
            APPLICATION,
        )
    left = sorted((moment, f"{name}.test") for name, moment in rows if (name, moment) not in gone)

    for dates in (None, *((_day(chance), _day(chance)) for _ in range(8))):
        expected = [domain for moment, domain in left if dates is None or dates[0] <= moment.date() <= dates[1]]
        for offset, limit in [(0, 200), *((chance.randrange(90), chance.randrange(1, 30)) for _ in range(12))]:
            async with database.connection() as connection:
                page = await monitored_domains.list_page(
                    connection, APPLICATION, offset=offset, limit=limit, dates=dates
                )
            assert [each.key.domain for each in page] == expected[offset : offset + limit]


def _moment(chance: Random) -> datetime:
    """Some days, and on them some moments, are busy; the edges of days too."""
    day = _FIRST + timedelta(days=chance.choice([0, 1, 1, 1, 5]))
    return day + chance.choice(
        [
            timedelta(0),
            timedelta(days=1, microseconds=-1),
            timedelta(hours=7, microseconds=chance.randrange(20_000_000)),
            timedelta(seconds=chance.randrange(86_400)),
        ]
    )


def _day(chance: Random) -> date:
    return (_FIRST + timedelta(days=chance.randrange(-1, 8))).date()
