"""Renewal by PUT, another try after a failure, and how many a day."""

from __future__ import annotations

from datetime import timedelta

from tests.integration.api.conftest import Service
from tests.integration.api.secure.parts import ALREADY, DOMAIN, LIMIT, REVIEW, refusal, secure_live, stored_redirect
from tests.integration.api.secured import Ssl, fail_order, go_live, order_state


async def test_a_renewal_is_asked_for_and_takes_nothing_away(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)

    answer = await ssl_partner.put(DOMAIN)

    assert (answer.status, set(answer.body)) == (200, {"message"})
    assert await order_state(service, DOMAIN) == "running"
    assert (await ssl_partner.get(domain=DOMAIN)).body["sslStatus"] == "active"
    assert (await ssl_partner.get(status="active")).body["total"] == 1
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)


async def test_a_departed_domain_is_not_renewed_until_it_is_back(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    service.zone.replace(DOMAIN, "CNAME", "elsewhere.test")
    async with service.database.connection() as connection:
        await connection.execute("update domains set departed_at = now()")
    assert (await ssl_partner.get(status="inactive")).body["total"] == 1

    answer = await ssl_partner.put(DOMAIN)
    assert refusal(answer) == (502, "The domain's DNS no longer leads here, so it cannot be renewed.")
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, REVIEW)

    service.zone.replace(DOMAIN, "CNAME", "target-1.partner.test")
    assert (await ssl_partner.get(domain=DOMAIN)).body["eligible"] is True
    assert (await ssl_partner.put(DOMAIN)).status == 200
    assert (await ssl_partner.post(DOMAIN)).status == 200  # it has its certificate still
    assert (await ssl_partner.get(domain=DOMAIN)).body["sslStatus"] == "active"


async def test_what_cannot_be_renewed_says_why(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    async with service.database.connection() as connection:
        await connection.execute("delete from orders")

    answer = await ssl_partner.put(DOMAIN)

    assert answer.status == 502
    assert answer.message.startswith("The certificate cannot be renewed: ")


async def test_put_that_changes_nothing_renews(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    answer = await ssl_partner.put(DOMAIN, applicationUrl=ssl_partner.origin)
    assert (answer.status, answer.message) == (200, "Renewal of the certificate has begun.")
    assert await order_state(service, DOMAIN) == "running"


async def test_after_a_failed_order_post_tries_at_once(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await fail_order(service, DOMAIN)
    assert (await ssl_partner.get(domain=DOMAIN)).body["eligible"] is True

    assert (await ssl_partner.post(DOMAIN, applicationUrl=None, redirectTo="www.customer.test")).status == 200

    assert await order_state(service, DOMAIN) == "running"
    assert await stored_redirect(service, DOMAIN) == "https://www.customer.test"
    async with service.database.connection() as connection:
        assert await connection.fetchval("select attempts from orders") == 0


async def test_a_lapsed_certificate_is_inactive_and_may_be_provisioned(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id, lasts=timedelta(seconds=-1))
    found = (await ssl_partner.get(domain=DOMAIN)).body
    assert (found["eligible"], found["sslStatus"]) == (True, "inactive")

    service.zone.remove(DOMAIN)
    gone = await ssl_partner.get(domain=DOMAIN)
    assert (gone.status, gone.body["eligible"]) == (200, False)  # enrolled: that is an answer

    service.point(DOMAIN)
    assert (await ssl_partner.post(DOMAIN)).status == 200
    assert await order_state(service, DOMAIN) == "running"


async def test_five_more_times_in_24_hours(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    for _ in range(6):
        assert (await ssl_partner.post(DOMAIN)).status == 200
        assert (await ssl_partner.delete(DOMAIN)).status == 200

    assert refusal(await ssl_partner.post(DOMAIN)) == (502, LIMIT)
    assert (await ssl_partner.partner.post(DOMAIN)).status == 200  # Power counts for itself

    await ssl_partner.partner.delete(DOMAIN)
    async with service.database.connection() as connection:
        await connection.execute("update enrolments set enrolled_at = enrolled_at - interval '24 hours 1 second'")
    assert (await ssl_partner.post(DOMAIN)).status == 200


async def test_a_refused_post_does_not_count(service: Service, ssl_partner: Ssl) -> None:
    service.zone.add(DOMAIN, "A", "192.0.2.99")
    for _ in range(7):
        assert refusal(await ssl_partner.post(DOMAIN)) == (502, REVIEW)
    service.zone.remove(DOMAIN)
    service.point(DOMAIN)

    assert (await ssl_partner.post(DOMAIN)).status == 200


async def test_renewal_is_limited_to_five_a_day(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    for _ in range(5):
        assert (await ssl_partner.put(DOMAIN)).status == 200
        assert (await ssl_partner.put(DOMAIN)).status == 200  # the same renewal
        await go_live(service, DOMAIN, ssl_partner.id)

    answer = await ssl_partner.put(DOMAIN)
    words = "The certificate cannot be renewed: this domain has been renewed too many times in 24 hours."
    assert refusal(answer) == (502, words)
    assert await order_state(service, DOMAIN) == "issued"

    assert (await ssl_partner.delete(DOMAIN)).status == 200
    assert (await ssl_partner.post(DOMAIN)).status == 200
    await go_live(service, DOMAIN, ssl_partner.id)
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, words)  # enrolling it again does not reset the limit

    async with service.database.connection() as connection:
        await connection.execute(
            "update enrolments set enrolled_at = enrolled_at - interval '1 day' where product = 'renewal'"
        )
    assert (await ssl_partner.put(DOMAIN)).status == 200


async def test_an_order_that_waits_is_hurried_five_times_a_day(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)

    async def postpone() -> None:
        async with service.database.connection() as connection:
            await connection.execute("update orders set due_at = now() + interval '1 hour' where domain = $1", DOMAIN)

    for _ in range(5):
        await postpone()
        assert (await ssl_partner.put(DOMAIN)).status == 200
        assert (await ssl_partner.put(DOMAIN)).status == 200  # it runs already
    await postpone()
    words = "The certificate cannot be renewed: this domain has been renewed too many times in 24 hours."
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, words)
    async with service.database.connection() as connection:
        assert await connection.fetchval("select due_at > now() from orders where domain = $1", DOMAIN)
