"""Power's POST, PUT, DELETE and list, over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.lab.zone import Behaviour
from common.db.certificates import Certificate, store
from common.db.pool import Connection
from common.enrolment.domain_claims import DomainClaims
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

DOMAIN = "shop.customer.test"
LIMIT = "This domain has been powered too many times in 24 hours."
ALREADY = "This domain has been already powered."
REVIEW = "Please review Power eligibility status of this domain."


async def test_a_pointed_domain_is_powered(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)

    answer = await partner.post(DOMAIN, "https://origin.example.com/base/")

    assert answer.status == 200
    assert set(answer.body) == {"message", "code", "hint"}  # that origin does not answer
    listed = await partner.get()
    [item] = listed.body["items"]
    assert listed.body == {
        "items": [
            {
                "domain": DOMAIN,
                "applicationUrl": "https://origin.example.com/base/",
                "powerRootPathAccess": ["/assets"],
                "powerStatus": "active",
                "id": item["id"],
                "createdAt": item["createdAt"],
                "updatedAt": item["createdAt"],
                "certificate": None,
                "metadata": {},
                "visitors": None,
                "test": False,
                "responsePolicy": None,
            }
        ],
        "total": 1,
        "page": 0,
        "limit": 50,
        "count": 1,
        "pages": 1,
        "nextPage": None,
        "prevPage": None,
    }
    async with service.database.connection() as connection:
        assert await connection.fetchval("select state from orders where domain = $1", DOMAIN) == "running"


@pytest.mark.parametrize(
    ("preference", "is_shown"),
    [
        ("return=representation", True),
        ('respond-async, Return="representation"; x=y', True),
        ("return=minimal, return=representation", False),
        ("representation", False),
        ("return=representations", False),
    ],
)
async def test_a_change_answers_with_the_domain_where_that_is_preferred(
    service: Service, partner: Partner, preference: str, is_shown: bool
) -> None:
    service.point(DOMAIN)
    headers = partner.headers | {"Prefer": preference}
    body = {"domain": DOMAIN.upper(), "applicationUrl": "https://origin.example.com/base/"}
    for method in ("POST", "PUT"):
        answer = await partner.call(method, "/power", json=body, headers=headers)
        assert answer.status == 200, answer
        assert ("message" in answer.body) != is_shown
        assert answer.headers.get("Preference-Applied") == ("return=representation" if is_shown else None)
        if is_shown:
            [listed] = (await partner.get()).body["items"]
            assert answer.body == listed | {key: answer.body[key] for key in ("code", "hint")}


async def test_spellings_of_a_name_are_one_domain(service: Service, partner: Partner) -> None:
    service.point("xn--bcher-kva.customer.test")

    assert (await partner.post("BÜCHER.Customer.Test.")).status == 200

    assert (await partner.post("xn--bcher-kva.customer.test")).message == ALREADY
    assert (await partner.get()).body["items"][0]["domain"] == "xn--bcher-kva.customer.test"
    assert (await partner.get(domain="bücher.customer.test")).body["powerStatus"] == "active"
    assert (await partner.delete("Bücher.customer.test")).status == 200


async def test_what_is_not_eligible_is_not_powered(service: Service, partner: Partner) -> None:
    service.zone.add("plain.customer.test", "A", "192.0.2.99")
    service.zone.misbehave("broken.customer.test", Behaviour.SERVFAIL)

    for name in ("plain.customer.test", "absent.customer.test", "broken.customer.test"):
        answer = await partner.post(name)
        assert (answer.status, answer.message) == (502, REVIEW)

    assert (await partner.get()).body["total"] == 0


async def test_step_one_comes_first(service: Service) -> None:
    partner = await service.partner(step_one=False)
    service.point(DOMAIN)
    answer = await partner.post(DOMAIN)
    assert (answer.status, answer.message) == (502, "Please complete step 1.")
    assert "CNAME record of your application's cname target" in answer.body["hint"]

    service.zone.add("target-1.partner.test", "CNAME", "elsewhere.test")
    assert (await partner.post(DOMAIN)).message == "Please complete step 1."

    service.zone.replace("target-1.partner.test", "CNAME", "power.frontage.test")
    assert (await partner.post(DOMAIN)).status == 200


async def test_a_powered_domain_is_not_powered_again(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    await partner.post(DOMAIN)

    answer = await partner.post(DOMAIN, "https://other.example.com")

    assert (answer.status, answer.message) == (502, ALREADY)
    assert (await partner.get()).body["items"][0]["applicationUrl"] == "https://origin.example.com"


async def test_of_many_posts_at_once_one_succeeds(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)

    answers = await asyncio.gather(*(partner.post(DOMAIN) for _ in range(20)))

    assert Counter((answer.status, answer.message) for answer in answers if answer.status != 200) == {
        (502, ALREADY): 19
    }
    assert (await partner.get()).body["total"] == 1


async def test_of_many_posts_of_a_name_one_at_a_time_asks_for_its_lock(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others hold no connection of the pool while they wait."""
    service.point(DOMAIN)
    inside = most = 0
    claimed = DomainClaims.claimed

    @asynccontextmanager
    async def counted(*arguments: Any) -> AsyncIterator[Connection]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        try:
            async with claimed(*arguments) as connection:
                yield connection
        finally:
            inside -= 1

    monkeypatch.setattr(DomainClaims, "claimed", counted)
    answers = await asyncio.gather(*(partner.post(DOMAIN) for _ in range(5)))

    assert sorted(answer.status for answer in answers) == [200, 502, 502, 502, 502]
    assert most == 1


async def test_another_applications_domain_is_out_of_reach(service: Service) -> None:
    owner, other = await service.partner(), await service.partner()
    service.point(DOMAIN)
    await owner.post(DOMAIN)
    service.zone.replace(DOMAIN, "CNAME", "target-2.partner.test")

    assert (await other.post(DOMAIN)).message == ALREADY
    assert (await other.put(DOMAIN, applicationUrl="https://evil.example.com")).message == "Domain not valid"
    assert (await other.delete(DOMAIN)).message == "Domain not valid"
    assert (await other.get()).body["total"] == 0
    assert (await other.get(domain=DOMAIN)).body == {
        "eligible": False,
        "powerStatus": "inactive",
        "cnameTarget": "",
        "applicationUrl": "",
        "powerRootPathAccess": [],
    }
    assert (await owner.get()).body["items"][0]["applicationUrl"] == "https://origin.example.com"


async def test_a_name_another_application_secures_is_taken(service: Service) -> None:
    owner, other = await service.partner(), await service.partner()
    service.point(DOMAIN, partner=2)
    async with service.database.connection() as connection:
        await connection.execute(
            "insert into domains (domain, product, application_id) values ($1, 'secure', $2)", DOMAIN, owner.id
        )

    assert (await other.post(DOMAIN)).message == ALREADY


async def test_put_changes_what_is_sent_and_keeps_the_rest(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    await partner.post(DOMAIN, powerRootPathAccess=["/static", "/media/"])

    assert (await partner.put(DOMAIN, applicationUrl="http://new.example.com:8080/x")).status == 200
    item = (await partner.get()).body["items"][0]
    assert item["applicationUrl"] == "http://new.example.com:8080/x"
    assert item["powerRootPathAccess"] == ["/static", "/media/"]

    assert (await partner.put(DOMAIN, powerRootPathAccess=[])).status == 200
    item = (await partner.get()).body["items"][0]
    assert item["applicationUrl"] == "http://new.example.com:8080/x"
    assert item["powerRootPathAccess"] == []


async def test_delete_releases_domain_and_certificate(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    await partner.post(DOMAIN)
    await store_certificate(service, partner.id, timedelta(days=90))

    assert (await partner.delete(DOMAIN)).status == 200

    assert (await partner.get()).body["total"] == 0
    assert (await partner.delete(DOMAIN)).message == "Domain not valid"
    assert (await partner.put(DOMAIN)).message == "Domain not valid"
    async with service.database.connection() as connection:
        assert await connection.fetchval("select count(*) from orders") == 0
        assert await connection.fetchval("select released_at is not null from certificates")


async def test_five_more_times_in_24_hours(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    for _ in range(6):
        assert (await partner.post(DOMAIN)).status == 200
        assert (await partner.delete(DOMAIN)).status == 200

    answer = await partner.post(DOMAIN)
    assert (answer.status, answer.message) == (502, LIMIT)

    async with service.database.connection() as connection:
        await connection.execute(
            "update enrolments set enrolled_at = enrolled_at - interval '24 hours 1 second'"
            " where enrolled_at <= (select enrolled_at from enrolments order by enrolled_at offset 1 limit 1)"
        )
    assert (await partner.post(DOMAIN)).status == 200
    await partner.delete(DOMAIN)
    assert (await partner.post(DOMAIN)).message == LIMIT


async def test_status_follows_dns_and_certificate(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    await partner.post(DOMAIN)
    assert (await partner.get(status="active")).body["total"] == 1

    await store_certificate(service, partner.id, timedelta(seconds=-1))
    assert (await partner.get(status="active")).body["total"] == 0
    assert (await partner.get(status="inactive")).body["items"][0]["powerStatus"] == "inactive"

    await store_certificate(service, partner.id, timedelta(days=1))
    assert (await partner.get()).body["items"][0]["powerStatus"] == "active"

    async with service.database.connection() as connection:
        await connection.execute("update domains set departed_at = now()")
    assert (await partner.get(domain=DOMAIN)).body["powerStatus"] == "inactive"


async def test_lists_come_in_pages(service: Service, partner: Partner) -> None:
    names = [f"shop-{number}.customer.test" for number in range(5)]
    for name in names:
        service.point(name)
        assert (await partner.post(name)).status == 200

    middle = (await partner.get(page=1, size=2)).body
    assert [item["domain"] for item in middle["items"]] == names[2:4]
    assert (middle["total"], middle["pages"], middle["count"]) == (5, 3, 2)
    assert (middle["prevPage"], middle["nextPage"], middle["limit"]) == (0, 2, 2)

    last = (await partner.get(page=2, size=2)).body
    assert (last["count"], last["nextPage"]) == (1, None)

    beyond = (await partner.get(page=999_999_999, size=200)).body
    assert (beyond["items"], beyond["total"], beyond["pages"], beyond["nextPage"]) == ([], 5, 1, None)


async def test_an_empty_list_has_no_pages(partner: Partner) -> None:
    body = (await partner.get(page="0")).body

    assert (body["items"], body["total"], body["pages"], body["prevPage"]) == ([], 0, 0, None)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("page=-1", "page"),
        ("page=x", "page"),
        ("page=", "page"),
        ("page=1.0", "page"),
        ("page=%F0%9D%9F%8F", "page"),
        ("page=9999999999999999999999", "page"),
        ("page=1&page=2", "page"),
        ("size=0", "size"),
        ("size=201", "size"),
        ("size=%00", "size"),
        ("status=ACTIVE", "status"),
        ("status=", "status"),
    ],
)
async def test_a_bad_list_parameter_is_named(partner: Partner, query: str, named: str) -> None:
    answer = await partner.call("GET", f"/power?{query}")

    assert (answer.status, answer.message) == (400, f"Invalid '{named}' parameter")


NAMES_THAT_ARE_NONE = [
    "",
    "customer",
    "a..customer.test",
    "*.customer.test",
    "shop.customer.test:443",
    "127.0.0.1",
    "shop\x00.customer.test",
    "shop.customer.test/",
    "a." * 125 + "abcd",
    "https://shop.customer.test",
]


@pytest.mark.parametrize("name", NAMES_THAT_ARE_NONE)
async def test_names_that_are_none_change_nothing(partner: Partner, name: str) -> None:
    for answer in (await partner.post(name), await partner.put(name), await partner.delete(name)):
        assert (answer.status, answer.message) == (502, "Domain not valid")


async def test_roots_cannot_be_powered_here(service: Service, partner: Partner) -> None:
    service.point("customer.test")

    assert (await partner.post("customer.test")).message == "Domain not valid"


async def test_an_enrolled_root_can_be_changed_and_removed(service: Service, partner: Partner) -> None:
    async with service.database.connection() as connection:
        await connection.execute(
            "insert into domains (domain, product, application_id, application_url)"
            " values ('customer.test', 'power', $1, 'https://origin.example.com')",
            partner.id,
        )

    assert (await partner.put("customer.test", applicationUrl="https://new.example.com")).status == 200
    assert (await partner.delete("customer.test")).status == 200


@pytest.mark.parametrize(
    "url",
    [
        "",
        "origin.example.com",
        "ftp://origin.example.com",
        "https://user@origin.example.com",
        "https://origin.example.com?a=b",
        "https://origin.example.com#a",
        "https://origin.example.com/a b",
        "https://origin.example.com/\x00",
        "https://origin.example.com\\a",
        "http://10.0.0.1",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://127.0.0.1:8080",  # EDGE_HTTP, though 127.0.0.0/8 is allowed
        "http://localhost:8000",  # API_LISTEN
        None,
        7,
        ["https://origin.example.com"],
    ],
)
async def test_bad_application_urls_are_refused(service: Service, partner: Partner, url: Any) -> None:
    service.point(DOMAIN)
    service.point("other.customer.test")
    assert (await partner.post("other.customer.test")).status == 200

    answer = await partner.post(DOMAIN, url)
    assert (answer.status, answer.message) == (502, "Invalid 'applicationUrl' parameter")

    if url is not None:
        answer = await partner.put("other.customer.test", applicationUrl=url)
        assert (answer.status, answer.message) == (502, "Invalid 'applicationUrl' parameter")
    listed = (await partner.get()).body
    assert (listed["total"], listed["items"][0]["applicationUrl"]) == (1, "https://origin.example.com")


async def test_allowed_private_origins_are_taken(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)

    assert (await partner.post(DOMAIN, "http://127.0.0.1:9000/app")).status == 200


@pytest.mark.parametrize("paths", ["/static", [1], [None], [""], ["/a b"], ["/\x00"], ["/a"] * 101, {"a": 1}])
async def test_bad_root_paths_are_refused(service: Service, partner: Partner, paths: Any) -> None:
    service.point(DOMAIN)

    answer = await partner.post(DOMAIN, powerRootPathAccess=paths)

    assert (answer.status, answer.message) == (502, "Invalid 'powerRootPathAccess' parameter")


async def store_certificate(service: Service, application_id: str, lasts: timedelta) -> None:
    now = datetime.now(UTC)
    certificate = Certificate("internal", "chain", b"key", now - timedelta(days=1), now + lasts)
    async with service.database.transaction() as connection:
        await store(connection, DOMAIN, application_id, certificate)
