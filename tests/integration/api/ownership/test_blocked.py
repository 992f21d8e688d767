"""Names that an operator has blocked, and applications that are suspended."""

from __future__ import annotations

from api.services.domain_files import parse_row
from api.services.domain_import import DomainImport
from common.db import applications, ownership, policies
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.ownership.parts import NOT_VALID, REASON, SHOP, holder, name_by_txt, refusal
from tests.integration.api.partner import Partner
from tests.integration.api.secured import Ssl


async def test_a_blocked_name_is_enrolled_by_no_application_and_stays_enrolled_where_it_is(
    service: Service, partner: Partner, origin: str
) -> None:
    service.zone.add(SHOP, "A", SERVER)
    name_by_txt(service, SHOP, partner)
    assert (await partner.post(SHOP, origin)).status == 200
    async with service.database.transaction() as connection:
        await policies.put(connection, "domain", SHOP, policies.FORBIDDEN, "Phishing was reported.")
    diagnosis = await partner.diagnose(SHOP)
    assert diagnosis["blocked"]["reason"] == "Phishing was reported."
    assert diagnosis["next_step"].startswith("The operator of this service has blocked shop.customer.test")
    assert (await partner.get(domain=SHOP)).body["powerStatus"] == "active"

    async with service.database.transaction() as connection:
        await ownership.revoke_ownership(connection, SHOP, partner.id, "released")
        await ownership.forget(connection, SHOP)
    answer = await partner.post(SHOP, origin)
    assert refusal(answer) == (502, NOT_VALID, "domain_blocked")
    assert "unblock" in answer.body["hint"]
    assert await holder(service) == set()
    diagnosis = await partner.diagnose(SHOP)
    assert (diagnosis["blocked"], diagnosis["ownership"]["status"]) == (None, "blocked")
    assert "unblock" in diagnosis["next_step"]
    async with service.database.transaction() as connection:
        assert await policies.remove(connection, "domain", SHOP)
    assert (await partner.post(SHOP, origin)).status == 200


async def test_what_an_operator_has_blocked_or_suspended_is_neither_enrolled_nor_changed(
    service: Service, partner: Partner, origin: str
) -> None:
    power, ssl = partner, Ssl(partner, origin)
    for name in (SHOP, "second.customer.test", "new.customer.test"):
        service.zone.add(name, "A", SERVER)
        name_by_txt(service, name, partner)
    assert (await power.post(SHOP, origin)).status == 200
    assert (await ssl.post("second.customer.test")).status == 200
    enrolled = (power.put(SHOP, applicationUrl=origin), ssl.put("second.customer.test", applicationUrl=origin))
    assert [(await each).status for each in enrolled] == [200, 200]
    async with service.database.connection() as connection:
        application = await applications.get_application(connection, partner.id)
    assert application is not None
    importing = DomainImport.of(service.settings, service.database, application)

    async def enrolling(name: str) -> list[tuple[int, str, str | None]]:
        return [refusal(await each) for each in (power.post(name, origin), ssl.post(name))]

    async def changing() -> list[tuple[int, str, str | None]]:
        calls = (
            power.put(SHOP, applicationUrl=origin),
            ssl.put("second.customer.test", redirectTo="https://new.example.com"),
        )
        return [refusal(await each) for each in calls]

    async def imported(name: str) -> str:
        row = parse_row({"product": "power", "domain": name, "applicationUrl": "https://other.example.com"})
        [outcome] = await importing.write([row])
        return str(outcome)

    cases: list[tuple[policies.Scope, tuple[str, ...], str, str]] = [
        ("domain", (SHOP, "second.customer.test", "new.customer.test"), "domain_blocked", "unblock"),
        ("application", (partner.id,), "application_suspended", "resume"),
    ]
    for scope, subjects, code, words in cases:
        async with service.database.transaction() as connection:
            for subject in subjects:
                await policies.put(connection, scope, subject, policies.FORBIDDEN, REASON)
        assert [*await enrolling("new.customer.test"), *await changing()] == [(502, NOT_VALID, code)] * 4
        shown = (await partner.call("GET", "/application")).body["suspended"]
        assert shown == (None if scope == "domain" else {"status": 403, "reason": REASON, "since": shown["since"]})
        eligibility = (await power.get(domain="new.customer.test")).body
        assert (eligibility["eligible"], words in eligibility["hint"]) == (False, True)
        assert [words in await imported(name) for name in (SHOP, "new.customer.test")] == [True, True]
        async with service.database.transaction() as connection:
            for subject in subjects:
                assert await policies.remove(connection, scope, subject)
    assert (await power.post("new.customer.test", origin)).status == 200
