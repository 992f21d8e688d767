"""Secure's endpoints, over HTTP, with a real name server and real origins."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.lab.zone import Behaviour
from common.db import applications
from tests.integration.api.conftest import SERVER, Service, open_service
from tests.integration.api.partner import Answer
from tests.integration.api.secured import Origin, Ssl, fail_order, go_live, issue, order_state, serve_origin
from tests.patience import UNHURRIED
from tests.tls_parts import the_ca

DOMAIN = "shop.customer.test"
ROOT = "customer.test"
NOT_VALID = "Domain not valid"
ALREADY = "There is already a valid certificate for this domain."
REVIEW = "Please review SSL eligibility status of this domain."
STEP_ONE = "Please complete step 1."
LIMIT = "This domain has been provisioned too many times in 24 hours."
UNREACHABLE = "ApplicationUrl is not reachable"
UNRESOLVED = "Domain provided couldn't be resolved."


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as origin:
        yield origin


@pytest.fixture
async def ssl_partner(service: Service, origin: Origin) -> Ssl:
    return Ssl(await service.partner(), origin.url)


def refusal(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.message


async def set_application(service: Service, application_id: str, **changes: Any) -> None:
    async with service.database.transaction() as connection:
        await applications.update_application(connection, application_id, **changes)


# From POST to DELETE ------------------------------------------------------------------------------------------


async def test_a_pointed_domain_is_secured_and_active_once_its_certificate_is_live(
    service: Service, ssl_partner: Ssl
) -> None:
    service.point(DOMAIN)
    assert (await ssl_partner.get(domain=DOMAIN)).body == {
        "eligible": True,
        "sslStatus": "inactive",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": "",
    }

    answer = await ssl_partner.post(DOMAIN)

    assert answer.status == 200
    assert set(answer.body) == {"message"}
    on_its_way = {
        "eligible": False,
        "sslStatus": "inactive",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": ssl_partner.origin,
    }
    for _ in range(2):  # ordered; then issued and not yet with every edge
        assert (await ssl_partner.get(domain=DOMAIN)).body == on_its_way
        assert refusal(await ssl_partner.post(DOMAIN)) == (502, REVIEW)
        assert (await ssl_partner.get()).body["items"][0]["secureStatus"] == "inactive"
        await issue(service, DOMAIN, ssl_partner.id)

    await go_live(service, DOMAIN, ssl_partner.id)
    assert (await ssl_partner.get(domain=DOMAIN)).body == on_its_way | {"sslStatus": "active"}
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)
    assert (await ssl_partner.get()).body == {
        "items": [{"domain": DOMAIN, "applicationUrl": ssl_partner.origin, "secureStatus": "active"}],
        "total": 1,
        "page": 0,
        "limit": 50,
        "count": 1,
        "pages": 1,
        "nextPage": None,
        "prevPage": None,
    }


async def test_what_is_secured_is_answered_without_dns(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    service.zone.questions.clear()

    await ssl_partner.get(domain=DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    await ssl_partner.get(domain=DOMAIN)

    assert service.zone.questions == []


async def test_delete_takes_domain_and_certificate(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)

    answer = await ssl_partner.delete(DOMAIN)

    assert (answer.status, set(answer.body)) == (200, {"message"})
    assert (await ssl_partner.get()).body["total"] == 0
    assert refusal(await ssl_partner.delete(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, NOT_VALID)
    assert (await ssl_partner.get(domain=DOMAIN)).body["eligible"] is True
    assert await order_state(service, DOMAIN) is None
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is not null from certificates")


async def test_secured_again_within_days_the_kept_certificate_is_adopted(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    await ssl_partner.delete(DOMAIN)

    assert (await ssl_partner.post(DOMAIN)).status == 200

    assert await order_state(service, DOMAIN) == "issued"
    assert (await ssl_partner.get(domain=DOMAIN)).body["sslStatus"] == "inactive"  # until edges have it


async def test_spellings_of_a_name_are_one_domain(service: Service, ssl_partner: Ssl) -> None:
    service.point("xn--bcher-kva.customer.test")

    assert (await ssl_partner.post("BÜCHER.Customer.Test.")).status == 200

    await go_live(service, "xn--bcher-kva.customer.test", ssl_partner.id)
    assert refusal(await ssl_partner.post("xn--bcher-kva.customer.test")) == (502, ALREADY)
    assert (await ssl_partner.get(domain="bücher.customer.test")).body["sslStatus"] == "active"
    assert (await ssl_partner.put("Bücher.customer.test.")).status == 200
    assert (await ssl_partner.delete("bücher.CUSTOMER.test")).status == 200


async def test_of_many_posts_at_once_one_succeeds(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)

    answers = await asyncio.gather(*(ssl_partner.post(DOMAIN) for _ in range(20)))

    assert Counter(answer.status for answer in answers) == {200: 1, 502: 19}
    assert {answer.message for answer in answers if answer.status != 200} == {REVIEW}
    assert (await ssl_partner.get()).body["total"] == 1


# Eligibility --------------------------------------------------------------------------------------------------


async def test_what_is_not_eligible_is_not_secured(service: Service, ssl_partner: Ssl) -> None:
    service.zone.add("plain.customer.test", "A", "192.0.2.99")
    service.zone.misbehave("broken.customer.test", Behaviour.SERVFAIL)

    assert (await ssl_partner.get(domain="plain.customer.test")).body["eligible"] is False
    for name in ("plain.customer.test", "absent.customer.test", "broken.customer.test"):
        assert refusal(await ssl_partner.post(name)) == (502, REVIEW)

    assert (await ssl_partner.get()).body["total"] == 0


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [(None, "nxdomain"), (Behaviour.SERVFAIL, "servfail"), (Behaviour.TIMEOUT, "timeout")],
)
async def test_what_could_not_be_resolved_says_why(
    service: Service, ssl_partner: Ssl, behaviour: Behaviour | None, code: str
) -> None:
    service.zone.misbehave(DOMAIN, behaviour)

    answer = await ssl_partner.get(domain=DOMAIN)

    assert (*refusal(answer), answer.body["code"]) == (400, UNRESOLVED, code)


async def test_step_one_comes_first(service: Service, origin: Origin) -> None:
    partner = Ssl(await service.partner(step_one=False), origin.url)
    service.point(DOMAIN)
    assert refusal(await partner.post(DOMAIN)) == (502, STEP_ONE)

    service.zone.add("target-1.partner.test", "CNAME", "elsewhere.test")
    assert refusal(await partner.post(DOMAIN)) == (502, STEP_ONE)

    service.zone.replace("target-1.partner.test", "CNAME", "secure.frontage.localhost")
    assert (await partner.post(DOMAIN)).status == 200


async def test_a_target_of_secures_own_is_the_one_that_counts(service: Service, ssl_partner: Ssl) -> None:
    await set_application(service, ssl_partner.id, secure_cname_target="ssl.partner.test")
    service.zone.add("ssl.partner.test", "CNAME", "secure.frontage.localhost")
    service.point("power.customer.test")
    service.zone.add(DOMAIN, "CNAME", "ssl.partner.test")

    assert (await ssl_partner.get(domain="power.customer.test")).body["eligible"] is False
    found = (await ssl_partner.get(domain=DOMAIN)).body
    assert (found["eligible"], found["cnameTarget"]) == (True, "ssl.partner.test")
    assert (await ssl_partner.post(DOMAIN)).status == 200


async def test_a_root_is_secured_when_all_its_addresses_are_ours(service: Service, ssl_partner: Ssl) -> None:
    service.zone.add(ROOT, "A", SERVER)
    service.zone.add(ROOT, "A", "192.0.2.99")
    assert (await ssl_partner.get(domain=DOMAIN, rootDomain="true")).body["eligible"] is False
    assert refusal(await ssl_partner.post(ROOT)) == (502, REVIEW)

    service.zone.remove(ROOT, "A", "192.0.2.99")
    service.zone.add(ROOT, "AAAA", "2001:db8::10")
    assert (await ssl_partner.get(domain=DOMAIN, rootDomain="true")).body["eligible"] is True
    assert (await ssl_partner.post(ROOT)).status == 200
    assert (await ssl_partner.put(ROOT)).status == 200
    assert (await ssl_partner.delete(ROOT)).status == 200


# The origin ---------------------------------------------------------------------------------------------------


async def test_the_applications_origin_is_the_default(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    answer = await ssl_partner.post(DOMAIN, applicationUrl=None)
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert "application has none" in answer.body["hint"]

    await set_application(service, ssl_partner.id, application_url="http://127.0.0.1:1")
    assert refusal(await ssl_partner.post(DOMAIN, applicationUrl=None)) == (502, UNREACHABLE)

    await set_application(service, ssl_partner.id, application_url=ssl_partner.origin)
    assert (await ssl_partner.post(DOMAIN, applicationUrl=None)).status == 200
    assert (await ssl_partner.get(domain=DOMAIN)).body["applicationUrl"] == ssl_partner.origin

    await set_application(service, ssl_partner.id, application_url="https://other.example.com")
    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == "https://other.example.com"


async def test_a_url_sent_wins_over_the_applications(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await set_application(service, ssl_partner.id, application_url="http://127.0.0.1:1")

    assert (await ssl_partner.post(DOMAIN)).status == 200

    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == ssl_partner.origin


@pytest.mark.parametrize("status", [204, 302, 404, 500])
async def test_any_answer_of_the_origin_will_do(service: Service, status: int) -> None:
    async with serve_origin(status) as origin:
        partner = Ssl(await service.partner(), origin.url + "/")
        service.point(DOMAIN)

        assert (await partner.post(DOMAIN)).status == 200
        assert origin.asked == [("HEAD", origin.url.removeprefix("http://"))]


async def test_an_origin_that_wants_the_customers_name_is_asked_by_it(service: Service, ssl_partner: Ssl) -> None:
    async with serve_origin() as origin:
        await set_application(service, ssl_partner.id, send_host="customer")
        service.point(DOMAIN)

        await ssl_partner.post(DOMAIN, applicationUrl=origin.url)

        assert origin.asked == [("HEAD", DOMAIN)]


async def test_an_origin_found_by_name_is_reached(service: Service, ssl_partner: Ssl, origin: Origin) -> None:
    service.point(DOMAIN)
    service.zone.add("origin.partner.test", "A", "127.0.0.1")
    port = origin.url.rpartition(":")[2]

    assert (await ssl_partner.post(DOMAIN, applicationUrl=f"http://origin.partner.test:{port}")).status == 200


async def test_an_origin_that_does_not_answer_is_not_reachable(service: Service, ssl_partner: Ssl) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        writer.close()

    service.point(DOMAIN)
    service.zone.add("private.partner.test", "A", "10.0.0.1")
    service.zone.add("broken.partner.test", "A", "127.0.0.1")
    service.zone.misbehave("broken.partner.test", Behaviour.SERVFAIL)
    async with (
        await asyncio.start_server(hang_up, "127.0.0.1", 0) as silent,
        await asyncio.start_server(babble, "127.0.0.1", 0) as babbling,
    ):
        ports = [server.sockets[0].getsockname()[1] for server in (silent, babbling)]
        for url in (
            "http://127.0.0.1:1",
            f"http://127.0.0.1:{ports[0]}",
            f"http://127.0.0.1:{ports[1]}",
            f"https://127.0.0.1:{ports[1]}",
            "http://private.partner.test",
            "http://absent.partner.test",
            "http://broken.partner.test",
        ):
            answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
            assert refusal(answer) == (502, UNREACHABLE), url
            assert "10.0.0.1" not in str(answer.body)

    assert (await ssl_partner.get()).body["total"] == 0


async def test_a_silent_origin_is_given_up(service: Service, ssl_partner: Ssl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.origin_probe.LONGEST_SECONDS", 0.2)
    release = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    service.point(DOMAIN)
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
        release.set()

    assert (*refusal(answer), answer.body["hint"]) == (502, UNREACHABLE, "it did not answer in time")


async def test_an_https_origin_is_verified_as_the_application_says(
    dsn: str, tmp_path: Path, probe_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "authorities.pem").write_text(the_ca().pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    chain, key = the_ca().issue("inner.partner.test")
    (tmp_path / "origin.pem").write_bytes(chain.encode() + key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "origin.pem")
    async with serve_origin(tls=tls) as origin, open_service(dsn, tmp_path, probe_port, UNHURRIED) as service:
        partner = Ssl(await service.partner(), origin.url.replace("127.0.0.1", "origin.partner.test"))
        service.point(DOMAIN)
        service.point("other.customer.test")
        service.zone.add("origin.partner.test", "A", "127.0.0.1")

        answer = await partner.post(DOMAIN)
        assert refusal(answer) == (502, UNREACHABLE)
        assert answer.body["hint"].startswith("its certificate is not valid for it (Hostname mismatch")

        await set_application(service, partner.id, origin_server_name="inner.partner.test")
        assert (await partner.post(DOMAIN)).status == 200

        await set_application(service, partner.id, origin_server_name=None, origin_verify=False)
        assert (await partner.post("other.customer.test")).status == 200


async def test_urls_that_are_none_or_private_are_refused(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    for url in ("http://10.0.0.1", "http://[::1]:8080", "ftp://a.example", "http://a@b.example", "", 1, ["a"], {}):
        answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
        assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter"), url


async def test_an_application_url_with_a_path_is_refused_and_changes_nothing(
    service: Service, ssl_partner: Ssl
) -> None:
    service.point(DOMAIN)
    answer = await ssl_partner.post(DOMAIN, applicationUrl=f"{ssl_partner.origin}/shop")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert f"send {ssl_partner.origin}" in answer.body["hint"]
    await set_application(service, ssl_partner.id, application_url=f"{ssl_partner.origin}/shop")
    answer = await ssl_partner.post(DOMAIN, applicationUrl=None)
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert (await ssl_partner.get()).body["total"] == 0

    assert (await ssl_partner.post(DOMAIN, applicationUrl=f"{ssl_partner.origin}/")).status == 200
    answer = await ssl_partner.put(DOMAIN, applicationUrl=f"{ssl_partner.origin}/shop")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")


# redirectTo ---------------------------------------------------------------------------------------------------


async def stored_redirect(service: Service, domain: str) -> str | None:
    async with service.database.connection() as connection:
        stored: str | None = await connection.fetchval("select redirect_to from domains where domain = $1", domain)
    return stored


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("www.Customer.test", "https://www.customer.test"), ("http://example.com/in", "http://example.com/in")],
)
async def test_a_redirect_needs_no_origin(service: Service, ssl_partner: Ssl, sent: str, stored: str) -> None:
    service.point(DOMAIN)

    assert (await ssl_partner.post(DOMAIN, applicationUrl=None, redirectTo=sent)).status == 200

    assert await stored_redirect(service, DOMAIN) == stored
    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == ""


async def test_redirects_that_are_none_are_refused(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    for redirect in ("", "192.0.2.1", "/path", "com", "a.example?x", "javascript:alert(1)", "x" * 3000, 1, ["a.b"]):
        answer = await ssl_partner.post(DOMAIN, redirectTo=redirect)
        assert refusal(answer) == (502, "Invalid 'redirectTo' parameter"), redirect
    assert (await ssl_partner.get()).body["total"] == 0


async def test_redirects_that_lead_back_are_refused(service: Service, ssl_partner: Ssl) -> None:
    names = [f"{letter}.customer.test" for letter in "abc"]
    for name in names:
        service.point(name)
    a, b, c = names
    assert refusal(await ssl_partner.post(a, redirectTo="http://A.customer.test.:81/x")) == (
        502,
        "Invalid 'redirectTo' parameter",
    )
    assert (await ssl_partner.post(a, redirectTo=b)).status == 200
    assert (await ssl_partner.post(b, redirectTo=c)).status == 200

    answer = await ssl_partner.post(c, redirectTo=a)

    assert (*refusal(answer), answer.body["code"]) == (502, "Invalid 'redirectTo' parameter", "loop")
    assert (await ssl_partner.post(c, redirectTo="elsewhere.test")).status == 200


async def test_two_redirects_at_once_close_no_circle(service: Service, ssl_partner: Ssl) -> None:
    for round_ in range(5):
        a, b = f"a{round_}.customer.test", f"b{round_}.customer.test"
        service.point(a)
        service.point(b)

        answers = await asyncio.gather(ssl_partner.post(a, redirectTo=b), ssl_partner.post(b, redirectTo=a))

        assert sorted(answer.status for answer in answers) == [200, 502]


# Renewal, and what follows a failure ---------------------------------------------------------------------------


async def test_a_renewal_is_asked_for_and_takes_nothing_away(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)

    answer = await ssl_partner.put(DOMAIN)

    assert (answer.status, set(answer.body)) == (200, {"message"})
    assert await order_state(service, DOMAIN) == "running"
    assert (await ssl_partner.get(domain=DOMAIN)).body["sslStatus"] == "active"
    assert (await ssl_partner.get(status="active")).body["total"] == 1
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)


async def test_a_departed_domain_is_not_renewed_until_it_is_back(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
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


async def test_a_removal_may_ask_for_revocation(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    assert refusal(await ssl_partner.delete(DOMAIN, reason="boredom")) == (502, "Invalid 'reason' parameter")

    assert (await ssl_partner.delete(DOMAIN, reason="keyCompromise")).status == 200

    async with service.database.connection() as connection:
        assert await connection.fetchval("select reason from revocations where domain = $1", DOMAIN) == 1
    assert (await ssl_partner.post(DOMAIN)).status == 200
    assert await order_state(service, DOMAIN) == "running"  # what is revoked is not adopted


# PUT changes settings -----------------------------------------------------------------------------------------


async def test_put_changes_origin_and_redirect_and_keeps_the_rest(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    async with serve_origin() as other:
        answer = await ssl_partner.put(DOMAIN, applicationUrl=other.url)
        assert (answer.status, answer.message) == (200, "Domain successfully updated.")
        assert other.asked, "the origin is asked as at POST"
        item = (await ssl_partner.get()).body["items"][0]
        assert item == {"domain": DOMAIN, "applicationUrl": other.url, "secureStatus": "active"}

        assert (await ssl_partner.put(DOMAIN, redirectTo="www.customer.test")).status == 200
        item = (await ssl_partner.get()).body["items"][0]
        assert (item["applicationUrl"], item["redirectTo"]) == (other.url, "https://www.customer.test")
        assert (await ssl_partner.get(domain=DOMAIN)).body["redirectTo"] == "https://www.customer.test"

        assert (await ssl_partner.put(DOMAIN, redirectTo="")).status == 200
        assert "redirectTo" not in (await ssl_partner.get()).body["items"][0]
    assert await order_state(service, DOMAIN) == "issued"  # none of this cost an order


async def test_put_that_changes_nothing_renews(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    answer = await ssl_partner.put(DOMAIN, applicationUrl=ssl_partner.origin)
    assert (answer.status, answer.message) == (200, "Renewal of the certificate has begun.")
    assert await order_state(service, DOMAIN) == "running"


async def test_put_refuses_what_post_refuses_and_changes_nothing(service: Service, ssl_partner: Ssl) -> None:
    other = f"other.{ROOT}"
    for name in (DOMAIN, other):
        service.point(name)
    await ssl_partner.post(DOMAIN)
    await ssl_partner.post(other, redirectTo=DOMAIN)
    for fields, message in (
        ({"applicationUrl": "http://127.0.0.1:1"}, UNREACHABLE),
        ({"applicationUrl": "http://10.0.0.1"}, "Invalid 'applicationUrl' parameter"),
        ({"applicationUrl": "ftp://origin.test"}, "Invalid 'applicationUrl' parameter"),
        ({"redirectTo": DOMAIN}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": other}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": "javascript:alert(1)"}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": 1}, "Invalid 'redirectTo' parameter"),
    ):
        assert refusal(await ssl_partner.put(DOMAIN, **fields)) == (502, message), fields
    shown = {"domain": DOMAIN, "applicationUrl": ssl_partner.origin, "secureStatus": "inactive"}
    assert shown in (await ssl_partner.get()).body["items"]


async def test_put_ends_no_redirect_that_has_no_origin_behind_it(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN, applicationUrl=None, redirectTo="www.customer.test")
    answer = await ssl_partner.put(DOMAIN, redirectTo="")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert (await ssl_partner.put(DOMAIN, redirectTo="", applicationUrl=ssl_partner.origin)).status == 200


async def test_two_changes_at_once_close_no_circle(service: Service, ssl_partner: Ssl) -> None:
    a, b = f"a.{ROOT}", f"b.{ROOT}"
    for name in (a, b):
        service.point(name)
        await ssl_partner.post(name)
    answers = await asyncio.gather(ssl_partner.put(a, redirectTo=b), ssl_partner.put(b, redirectTo=a))
    assert sorted(answer.status for answer in answers) == [200, 502]


# Whose it is --------------------------------------------------------------------------------------------------


async def test_another_applications_domain_is_out_of_reach(service: Service, ssl_partner: Ssl) -> None:
    other = Ssl(await service.partner(), ssl_partner.origin)
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    service.zone.replace(DOMAIN, "CNAME", "target-2.partner.test")

    assert refusal(await other.post(DOMAIN)) == (502, "This domain has been already powered.")
    assert refusal(await other.partner.post(DOMAIN)) == (502, "This domain has been already powered.")
    assert refusal(await other.put(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await other.delete(DOMAIN)) == (502, NOT_VALID)
    assert (await other.get()).body["total"] == 0
    assert (await other.get(domain=DOMAIN)).body == {
        "eligible": False,
        "sslStatus": "inactive",
        "cnameTarget": "",
        "applicationUrl": "",
    }


async def test_both_products_share_one_certificate(service: Service, ssl_partner: Ssl) -> None:
    power = ssl_partner.partner
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)

    assert (await power.post(DOMAIN)).status == 200  # no certificate to order
    async with service.database.connection() as connection:
        assert [tuple(row) for row in await connection.fetch("select type, subdomain, fields from events")] == [
            ("domain.power", "shop", {"power_status": "success"})
        ]
    assert await order_state(service, DOMAIN) == "issued"
    assert (await power.get(domain=DOMAIN)).body["applicationUrl"] == "https://origin.example.com"
    assert (await ssl_partner.get(domain=DOMAIN)).body["applicationUrl"] == ssl_partner.origin

    assert (await ssl_partner.delete(DOMAIN)).status == 200
    assert (await power.get(domain=DOMAIN)).body["powerStatus"] == "active"
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is null from certificates")

    # The certificate that Power has is a valid one.
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)
    found = (await ssl_partner.get(domain=DOMAIN)).body
    assert (found["eligible"], found["sslStatus"]) == (False, "active")
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await ssl_partner.delete(DOMAIN)) == (502, NOT_VALID)

    assert (await power.delete(DOMAIN)).status == 200
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is not null from certificates")


async def test_both_products_at_once_order_one_certificate(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)

    answers = await asyncio.gather(ssl_partner.post(DOMAIN), ssl_partner.partner.post(DOMAIN))

    statuses = {answer.status for answer in answers}
    assert statuses == {200} or (answers[1].status, refusal(answers[0])) == (200, (502, REVIEW))
    async with service.database.connection() as connection:
        assert await connection.fetchval("select count(*) from orders") == 1


# What is sent -------------------------------------------------------------------------------------------------


NAMES_THAT_ARE_NONE: list[Any] = [
    "",
    "customer",
    "com",
    "a..customer.test",
    "*.customer.test",
    "shop.customer.test:443",
    "127.0.0.1",
    "[::1]",
    "shop\x00.customer.test",
    "shop.customer.test/",
    "a." * 125 + "abcd",
    "ü" * 30_000,
    "\u202eshop.customer.test",
    "https://shop.customer.test",
    None,
    True,
    1,
    1.5,
    [],
    ["shop.customer.test"],
    {"a": 1},
]


async def test_names_that_are_none_change_nothing(ssl_partner: Ssl) -> None:
    for name in NAMES_THAT_ARE_NONE:
        for answer in (await ssl_partner.post(name), await ssl_partner.put(name), await ssl_partner.delete(name)):
            assert refusal(answer) == (502, NOT_VALID), name
        if isinstance(name, str) and len(name) < 1000:
            answer = await ssl_partner.get(domain=name)
            assert (*refusal(answer), answer.body["code"]) == (400, UNRESOLVED, "invalid"), name


BAD_QUERIES = [
    ("page=-1", "page"),
    ("page=", "page"),
    ("page=%00", "page"),
    ("page=1&page=1", "page"),
    ("size=0", "size"),
    ("size=201", "size"),
    ("size=1e2", "size"),
    ("status=Active", "status"),
    ("status=active&status=active", "status"),
    ("domain=a.customer.test&domain=a.customer.test", "domain"),
    ("domain=a.customer.test&rootDomain=1", "rootDomain"),
    ("domain=a.customer.test&rootDomain=true&rootDomain=true", "rootDomain"),
]


async def test_a_bad_parameter_is_named(ssl_partner: Ssl) -> None:
    for query, named in BAD_QUERIES:
        answer = await ssl_partner.partner.call("GET", f"/ssl?{query}")
        assert refusal(answer) == (400, f"Invalid '{named}' parameter"), query


async def test_lists_come_in_pages_and_by_status(service: Service, ssl_partner: Ssl) -> None:
    names = [f"shop-{number}.customer.test" for number in range(5)]
    for name in names:
        service.point(name)
        assert (await ssl_partner.post(name)).status == 200
    await go_live(service, names[1], ssl_partner.id)

    middle = (await ssl_partner.get(page=1, size=2)).body
    assert [item["domain"] for item in middle["items"]] == names[2:4]
    assert (middle["total"], middle["pages"], middle["prevPage"], middle["nextPage"]) == (5, 3, 0, 2)
    active = (await ssl_partner.get(status="active")).body
    assert [item["domain"] for item in active["items"]] == [names[1]]
    assert (await ssl_partner.get(status="inactive", size=1)).body["total"] == 4
    assert (await ssl_partner.partner.get()).body["total"] == 0  # Power lists its own


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_only_who_may_is_answered(service: Service, ssl_partner: Ssl, method: str) -> None:
    anonymous = await ssl_partner.partner.call(method, "/ssl", json={}, headers={})
    assert refusal(anonymous) == (401, "Unauthorized")

    other = await service.partner()
    foreign = {"applicationId": other.id, "Authorization": f"Bearer {ssl_partner.partner.token()}"}
    assert refusal(await ssl_partner.partner.call(method, "/ssl", json={}, headers=foreign)) == (403, "Forbidden")


async def test_http_keeps_its_own_statuses(service: Service, ssl_partner: Ssl) -> None:
    call = ssl_partner.partner.call
    assert (await call("PATCH", "/ssl")).status == 405
    headers = ssl_partner.partner.headers | {"Content-Type": "text/plain"}
    assert (await call("POST", "/ssl", data=b"{}", headers=headers)).status == 415
    headers["Content-Type"] = "application/json"
    assert (await call("POST", "/ssl", data=b"1" * 300_000, headers=headers)).status == 413
    for body in (b"", b"[]", b"null", b"{", b'{"domain": "\xff"}', b"[" * 100_000):
        for method in ("POST", "PUT", "DELETE"):
            answer = await call(method, "/ssl", data=body, headers=headers)
            assert refusal(answer) == (502, "Invalid request body")


async def test_renewal_is_limited_to_five_a_day(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
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
