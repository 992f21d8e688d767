"""What needs an operator's hand is no "all is well" in `frontage status`, nor "ok" in `frontage doctor`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from common.db.edge_nodes import Condition, EdgeDescription, EdgeNode, FailedUpgrade, UnusableCertificates
from common.db.issuance_progress import IssuanceProgress
from common.db.monitor_health import MonitorHealth
from common.db.monitor_nodes import MonitorNode
from common.db.revocations import RevocationBacklog
from common.db.status import Edge, Expiry, FailingOrders, InstallationStatus, LimitUse, QueueLength, Unrenewed
from common.installation_problems import find_problems, list_problems

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
NODE = EdgeNode("e" * 32, "edge.example", 7, Condition(), NOW)
MONITOR = MonitorNode("m" * 32, "monitor.example", "internal", (), NOW, NOW, is_alive=True)
UPGRADE = EdgeDescription(failed_upgrade=FailedUpgrade(NOW, "no such module"))
WELL = InstallationStatus(
    at=NOW,
    feed_version=7,
    edges=[Edge(NODE, True, 0)],
    monitors=[MONITOR],
    checks=MonitorHealth(is_healthy=True, reason=None, executed_at=NOW),
    alarms_held=0,
    queues=[QueueLength("DNS checks", 900, 299.0)],
    certificates=[Expiry(None, 0, 0), Expiry(1, 3, 4)],
    unrenewed=[Unrenewed(0, 0), Unrenewed(3, 0), Unrenewed(7, 9)],
    ledger=[LimitUse("ca", "orders_per_account", "", 270, 300, NOW)],
    failing_orders=[FailingOrders("refused", 10, "one.example")],
    progress=IssuanceProgress(0, 0, 12, 300, 60, None),
    revocations=RevocationBacklog(2, 599.0, "one.example"),
    endpoints_failing=5,
    endpoints_disabled=3,
)


def test_an_installation_that_is_well_has_no_problem() -> None:
    assert find_problems(WELL) == []


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        ("edges", {"edges": []}),
        ("edges", {"edges": [Edge(NODE, True, 0), Edge(replace(NODE, node_id="f" * 32), False, 0)]}),
        ("edges", {"edges": [Edge(replace(NODE, condition=Condition("stuck", "the disk is full")), True, 0)]}),
        ("edges", {"edges": [Edge(replace(NODE, description=UPGRADE), True, 0)]}),
        ("edges", {"edges": [Edge(replace(NODE, shares_id_of="f" * 32), True, 0)]}),
        ("edges", {"edges": [Edge(replace(NODE, unusable=UnusableCertificates(2, "one.example")), True, 0)]}),
        ("certificates", {"revocations": RevocationBacklog(1, 601.0, "one.example")}),
        ("monitors", {"monitors": []}),
        ("monitors", {"monitors": [replace(MONITOR, stopped=("deliveries",))]}),
        ("monitors", {"monitors": [MONITOR, replace(MONITOR, node_id="monitor-2", issuer="internal ffff")]}),
        ("certificates", {"certificates": [Expiry(None, 0, 1)]}),
        ("certificates", {"unrenewed": [Unrenewed(0, 0), Unrenewed(3, 1)]}),
        ("certificate orders", {"failing_orders": [FailingOrders("refused", 11, "one.example")]}),
        ("limits of the CA", {"ledger": [LimitUse("ca", "orders_per_account", "", 271, 300, NOW)]}),
        ("work", {"queues": [QueueLength("webhook endpoints", 3, 301.0)]}),
        ("webhooks", {"endpoints_failing": 6}),
        ("DNS checks", {"checks": MonitorHealth(is_healthy=False, reason="no name server answers", executed_at=NOW)}),
        ("alarms", {"alarms_held": 2}),
    ],
)
def test_each_condition_is_one_problem_with_a_sentence(subject: str, changes: dict[str, Any]) -> None:
    status = replace(WELL, **changes)
    [problem] = find_problems(status)
    assert problem.subject == subject
    assert problem.seen
    assert problem.remedy
    assert list_problems(status) == [problem.text]


@pytest.mark.parametrize(
    ("changes", "seen", "remedy"),
    [
        ({"edges": [Edge(replace(NODE, description=UPGRADE), True, 0)]}, "(no such module)", "upgrade again"),
        ({"monitors": [replace(MONITOR, stopped=("deliveries",))]}, "work (deliveries)", "see its log for the reason"),
        (
            {"failing_orders": [FailingOrders("The CA refused it.", 11, "one.example")]},
            "11 certificate orders fail for one reason (The CA refused it)",
            "`frontage certificate show one.example`",
        ),
        ({"edges": []}, "No edge runs", "start `frontage edge`"),
        ({"monitors": []}, "No monitor runs", "start `frontage monitor`"),
        (
            {"certificates": [Expiry(None, 0, 1, "one.example")]},
            "A certificate in service has expired",
            "`frontage certificate show one.example` has the last error",
        ),
        (
            {"unrenewed": [Unrenewed(0, 0), Unrenewed(3, 2, "two.example")]},
            "2 certificates end within 3 days without a renewal",
            "`frontage certificate show two.example` has the last error of one of them",
        ),
    ],
)
def test_a_problem_says_what_to_do_next(changes: dict[str, Any], seen: str, remedy: str) -> None:
    [problem] = find_problems(replace(WELL, **changes))
    assert seen in problem.seen
    assert remedy in problem.remedy


def test_leases_that_lapsed_with_the_database_are_not_called_edges_and_monitors_that_do_not_run() -> None:
    lapsed = replace(WELL, edges=[Edge(NODE, False, 0)], monitors=[replace(MONITOR, is_alive=False)])
    seen = {problem.seen: problem.remedy for problem in find_problems(lapsed)}
    assert "serves from its copy" in seen["No edge holds a lease"]
    assert "reports again within seconds" in seen["No edge holds a lease"]
    [monitors] = [words for words in seen if words.startswith("No monitor holds a lease")]
    assert "on monitor.example, ended at 2026-03-04 05:06:00 UTC" in monitors
