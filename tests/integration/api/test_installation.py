"""What the API says when the monitor or the edges cannot do their part: accepted work is not called done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from common.db.edge_nodes import Condition, EdgeState
from common.db.monitor_nodes import ISSUING
from tests.integration.api.conftest import Service
from tests.integration.api.installation import end_monitors, lease_edge, lease_monitor
from tests.integration.api.partner import Partner
from tests.integration.api.secured import go_live, serve_origin

DOMAIN = "shop.customer.test"


@pytest.fixture
async def partner(service: Service) -> AsyncIterator[Partner]:
    """One whose domain is powered, with an origin that answers."""
    async with serve_origin() as origin:
        partner = await service.partner()
        service.point(DOMAIN)
        assert (await partner.post(DOMAIN, origin.url)).status == 200
        yield partner


async def readiness(service: Service) -> dict[str, Any]:
    async with service.session.get(service.url + "/readyz") as response:
        assert response.status == 200
        body: dict[str, Any] = await response.json()
    return body


async def test_without_a_monitor_nothing_is_called_on_its_way(service: Service) -> None:
    partner = await service.partner()
    service.point(DOMAIN)
    assert (await readiness(service)) == {"status": "ready"}
    await end_monitors(service.database)

    accepted = await partner.post(DOMAIN)
    assert (accepted.status, accepted.message) == (200, "Domain successfully powered.")
    assert accepted.body["code"] == "no_monitor"
    assert "no running monitor issues any" in accepted.body["hint"]

    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["monitor"]) == ("action needed", {"status": "not running"})
    assert "start `frontage monitor`" in found["next_step"]

    ready = await readiness(service)
    assert (ready["status"], ready["code"]) == ("ready, but no monitor issues certificates", "no_monitor")

    await lease_monitor(service.database)
    assert (await partner.diagnose(DOMAIN))["monitor"] == {"status": "running"}


async def test_a_monitor_that_cannot_issue_is_none(service: Service, partner: Partner) -> None:
    await lease_monitor(service.database, stopped=(ISSUING,))
    found = await partner.diagnose(DOMAIN)
    assert found["monitor"] == {"status": "not running"}
    assert "no monitor is running" not in found["next_step"]


async def test_a_live_domain_is_not_ok_while_nothing_renews_it(service: Service, partner: Partner) -> None:
    await go_live(service, DOMAIN, partner.id)
    await end_monitors(service.database)
    found = await partner.diagnose(DOMAIN)
    assert found["status"] == "action needed"
    assert "certificate is valid until 20" in found["next_step"]


@pytest.mark.parametrize(
    ("state", "words"), [("held", "holds back"), ("stuck", "cannot write"), ("unusable", "cannot open certificates")]
)
async def test_an_edge_that_cannot_do_its_part_is_named(
    service: Service, partner: Partner, state: EdgeState, words: str
) -> None:
    await go_live(service, DOMAIN, partner.id)
    await lease_edge(service.database, "0123456789abcdef", Condition(state, "a secret of the operator's"))

    accepted = await partner.put(DOMAIN, powerRootPathAccess=["/a"])
    assert (accepted.status, accepted.body["code"]) == (200, "edges_behind")
    assert f"1 of 2 edges do not serve the change yet: 01234567 {words}" in accepted.body["hint"]

    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["edges"]["status"], found["edges"]["running"]) == ("action needed", "behind", 2)
    assert words in found["next_step"]
    assert "secret" not in str(accepted.body) + str(found)


async def test_an_edge_that_is_slow_is_waited_for_and_then_named(service: Service, partner: Partner) -> None:
    await go_live(service, DOMAIN, partner.id)
    await service.edge.stop()
    accepted = await partner.put(DOMAIN, powerRootPathAccess=["/a"])
    assert accepted.body["code"] == "edges_behind"
    assert "edge-1 has not applied it" in accepted.body["hint"]
    assert (await partner.diagnose(DOMAIN))["status"] == "waiting"


async def test_without_an_edge_nothing_is_called_served(service: Service, partner: Partner) -> None:
    await go_live(service, DOMAIN, partner.id)
    await service.edge.end()
    assert (await partner.put(DOMAIN, powerRootPathAccess=["/a"])).body["code"] == "no_edge"
    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["edges"]["status"]) == ("action needed", "not running")
    assert "no edge reports to the database" in found["next_step"]
    assert found["certificate"]["status"] == "issued"
