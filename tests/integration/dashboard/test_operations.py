"""The operators' page and `frontage status`: what edges report of themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from common.db import domains, edge_nodes, monitor_nodes, orders
from common.db.edge_nodes import Condition, EdgeDescription, EdgeTraffic, FailedUpgrade
from common.db.renewal_risks import Risk, RiskRecord
from common.domain_settings import DomainSettings
from tests.integration.cli.frontage import environment, run
from tests.integration.dashboard.conftest import Dashboard

AT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
HELD = Condition("held", "the copy removes 900 of 1,000 routes")


async def test_versions_a_held_copy_and_a_failed_upgrade_of_edges_are_shown(
    dashboard: Dashboard, dsn: str, tmp_path: Path
) -> None:
    failed = FailedUpgrade(AT, "no such module: <b>edge</b>")
    await dashboard.service.edge.stop()  # it makes all leases last
    async with dashboard.service.database.transaction() as connection:
        for name, condition, description, traffic in (
            ("old00000", HELD, EdgeDescription("1.2.0", held_copy_at=AT, failed_upgrade=failed), None),
            ("new00000", edge_nodes.SERVING, EdgeDescription("1.3.0"), EdgeTraffic(1204, 3)),
        ):
            host = f"{name}.example"
            await edge_nodes.report(
                connection, name, "", 1, condition, host=host, description=description, traffic=traffic
            )
        await monitor_nodes.report(connection, "halted00", "halted.example", "internal aaaa", ("deliveries",))
        # As long as the test takes, on a machine of any speed.
        await connection.execute("update edge_nodes set lease_until = now() + interval '1 day' where host <> ''")
        await connection.execute("update monitor_nodes set lease_until = now() + interval '1 day'")
        await edge_nodes.report(connection, "killed00", "", 1, edge_nodes.SERVING, host="killed00.example")
        await connection.execute("update edge_nodes set lease_until = now() where node_id = 'killed00'")
    operator = await dashboard.signed_in("ops@example.com")

    page = await operator.get("/dashboard/operations")

    assert "Upgrade of edge old00000 on old00000.example failed at 2026-03-04 05:06 UTC" in page.words
    assert "no such module: <b>edge</b>" in page.words
    assert "<b>edge</b>" not in page.text
    assert "1.2.0 (old00000); 1.3.0 (new00000); unknown (" in page.words
    assert "Upgrade failed" in page.words
    assert "Monitor on halted.example has stopped work (deliveries)" in page.words
    assert '<span class="badge bad">Ended ' in page.text
    assert "1,204 3 failed" in page.words
    assert page.words.count("the copy removes 900 of 1,000 routes") == 1  # above the table, whose cells are narrow

    env = environment(tmp_path, DATABASE_URL=dsn)
    shown = run("status", env=env)
    assert "✗ Upgrade of edge old00000" in shown.stdout, shown.stderr
    assert "halted.example  stopped: deliveries" in shown.stdout
    assert "! Edges run different versions of Frontage" in shown.stdout
    assert "Frontage 1.2.0, holds a copy since 2026-03-04 05:06 UTC, upgrade failed at" in shown.stdout
    read = json.loads(run("status", "--json", env=env).stdout)
    (old,) = [each["node"] for each in read["edges"] if each["node"]["nodeId"] == "old00000"]
    assert "1,204 requests in the last minute, 3 failed" in shown.stdout
    assert old["traffic"] is None
    assert old["description"]["softwareVersion"] == "1.2.0"
    assert old["description"]["failedUpgrade"]["reason"] == failed.reason
    assert old["description"]["heldCopyAt"].startswith("2026-03-04")
    assert len(read["notices"]) == 1


async def test_an_edge_that_is_behind_is_named_once_in_a_diagnosis(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    async with dashboard.service.database.transaction() as connection:
        await domains.power(connection, "shop.customer.test", partner.id, DomainSettings("https://o.example"))
        await edge_nodes.report(connection, "held0000", "", 0, HELD, host="held.example")
        await connection.execute("update edge_nodes set lease_until = now() + interval '1 day'")
    operator = await dashboard.signed_in("ops@example.com")

    page = await operator.get(f"/dashboard/applications/{partner.id}/domains/shop.customer.test/diagnosis")

    assert page.words.count("held0000 holds back many removals") == 1
    assert "held0000: held0000" not in page.words


async def test_a_renewal_at_risk_is_shown_with_the_record_to_change(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    record = RiskRecord("CNAME", "_acme-challenge.shop.customer.test", "label.acme.test")
    risk = Risk("delegation_missing", "Set the <b>record</b> again.", "domain_owner", record, seen=2)
    async with dashboard.service.database.transaction() as connection:
        await domains.power(connection, "shop.customer.test", partner.id, DomainSettings("https://o.example"))
        await orders.request_order(connection, "shop.customer.test", partner.id, hold_seconds=0)
        await connection.execute("update orders set renewal_risk = $1", risk.as_stored())
    operator = await dashboard.signed_in("ops@example.com")

    page = await operator.get(f"/dashboard/applications/{partner.id}/domains/shop.customer.test/diagnosis")

    assert "At risk The domain's owner has to act" in page.words
    assert "CNAME _acme-challenge.shop.customer.test → label.acme.test" in page.words
    assert "Set the <b>record</b> again." in page.words
    assert "<b>record</b>" not in page.text
