"""What monitors show of the installation: what is wrong has a figure, and what is not known has none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from common.builds import Build
from common.clock import SystemClock
from common.db import orders
from common.db.ca_ledger import Limits
from common.db.pool import Database, open_pool
from common.db.session import SessionTimeouts
from common.db.status import read_status
from common.exposition import render
from common.installation_problems import list_problems
from common.settings import Settings
from monitor.lease import Lease
from monitor.measurements import Measurements
from monitor.retention import Retention

from . import parts

BUILD = Build("1.2.0", "0123456789ab")


def measurements(database: Database, dsn: str, tmp_path: Path) -> Measurements:
    retention = Retention(database, SystemClock(), Random(1))
    return Measurements(
        Settings(state_dir=tmp_path), database, {}, retention, Lease(dsn, "internal x", set, str(BUILD)), (), BUILD
    )


async def shown(database: Database, dsn: str, tmp_path: Path) -> list[str]:
    return render(await measurements(database, dsn, tmp_path).measure()).decode().splitlines()


async def test_certificates_that_end_unrenewed_and_failing_orders_are_counted(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    await parts.add_application(database)
    lifetimes = {"one": 90, "two": 90, "gone": 90, "short-lived": 6}
    for name, days in ((f"{label}.customer.example", days) for label, days in lifetimes.items()):
        await parts.power(database, name)
        async with database.transaction() as connection:
            await connection.execute(
                "insert into certificates (domain, application_id, chain, private_key, issuer, not_before, not_after)"
                " values ($1, $2, '', '', 'internal', $3::timestamptz - make_interval(days => $4), $3)",
                name,
                parts.APPLICATION,
                datetime.now(UTC) + timedelta(days=2),
                days,
            )
            await connection.execute(
                "update orders set last_error = 'the CA refused ' || domain || ' (429)' where domain = $1", name
            )
    async with database.transaction() as connection:
        await connection.execute("update domains set departed_at = now() where domain = 'gone.customer.example'")
        status = await read_status(connection, Limits())
    [within] = [each for each in status.unrenewed if each.within_days == 3]
    assert (within.count, within.example) == (2, "two.customer.example")
    lines = await shown(database, dsn, tmp_path)
    assert 'frontage_certificates_unrenewed{within_days="1"} 0.0' in lines
    assert 'frontage_certificates_unrenewed{within_days="3"} 2.0' in lines
    assert 'frontage_orders_failing{reason="the CA refused … (…)"} 4.0' in lines
    assert not any("customer.example" in line for line in lines)


async def test_orders_that_fail_for_one_reason_are_counted_whatever_they_name(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    """Each failure names its domain, so that each has words of its own."""
    await parts.add_application(database)
    for number in range(12):
        await parts.power(database, f"d{number}.customer.example")
    await parts.power(database, "moved.customer.example")
    await parts.power(database, "past.customer.example")
    async with database.transaction() as connection:
        await connection.execute("update orders set last_error = 'the CA refused ' || domain")
        for label, reason in (("moved", orders.DNS_MOVED_AWAY), ("past", orders.DNS_BYPASSES_TARGET)):
            words = "update orders set last_error = $1 where domain = $2"
            await connection.execute(words, reason, f"{label}.customer.example")  # their owners' affair
        status = await read_status(connection, Limits())
    lines = await shown(database, dsn, tmp_path)
    assert [line for line in lines if line.startswith("frontage_orders_failing{")] == [
        'frontage_orders_failing{reason="the CA refused …"} 12.0'
    ]
    assert "12 certificate orders fail" in " ".join(list_problems(status))


async def test_without_postgres_only_what_the_monitor_knows_itself_is_shown(tmp_path: Path) -> None:
    unreachable = "postgresql://127.0.0.1:1/frontage"
    hasty = SessionTimeouts(connect_seconds=5.0, acquire_seconds=5.0)
    async with open_pool(unreachable, size=1, application_name="tests", timeouts=hasty) as database:
        lines = await shown(database, unreachable, tmp_path)
    assert "frontage_database_reachable 0.0" in lines
    assert any(line.startswith("frontage_monitor_lease_age_seconds") for line in lines)
    assert not any(line.startswith(("frontage_due", "frontage_edges", "frontage_certificates")) for line in lines)
