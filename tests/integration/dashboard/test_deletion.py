"""An application that is being deleted, as a process sees it that does not do so itself."""

from __future__ import annotations

from common.db import application_removal, domains
from common.domain_settings import DomainSettings
from tests.integration.dashboard.conftest import Dashboard


async def test_what_stops_is_listed_before_an_application_is_deleted(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    operator = await dashboard.signed_in("ops@example.com")
    async with dashboard.service.database.transaction() as connection:
        await domains.power(connection, "shop.customer.test", partner.id, DomainSettings("https://o.example"))
    words = (await operator.get(f"/dashboard/applications/{partner.id}/delete")).words
    assert "1 domain stops being served shop.customer.test. Its certificate is erased." in words


async def test_what_is_left_of_a_deletion_is_shown_whichever_process_is_at_work(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    operator = await dashboard.signed_in("ops@example.com")
    path = f"/dashboard/applications/{partner.id}/delete"
    assert "0 domains stop being served" in (await operator.get(path)).words
    async with dashboard.service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)
    words = (await operator.get(path)).words
    assert "It is being deleted." in words
    assert "another one goes on within half a minute" in words
    assert "0 domains are left to remove" in words
    assert "stop being served" not in words
