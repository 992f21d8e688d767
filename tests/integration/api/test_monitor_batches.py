"""Monitor's batches, over HTTP, and worked off as a monitor does."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pytest

from common.db import batches
from monitor.batches.processing import Processing
from monitor.claims import Runner
from tests.beside import beside
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.watching import APEX, MAIL, WWW, Watcher
from tests.waiting import until_equal

TXT = {"type": "TXT", "host": "@", "value": "x" * 200, "ttl": 300}
LABELS = "labels are of letters, digits, underscores and inner hyphens, up to 63 characters each"
BATCH = "/monitor/domains/batch"
JSON = {"Content-Type": "application/json"}


def entry(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"domain": f"d{number}.test", "dnsRecords": [WWW]} | fields


async def create(partner: Partner, *entries: Any) -> Answer:
    body = io.BytesIO(json.dumps({"domains": entries}).encode())  # large ones are sent piece by piece
    return await partner.call("POST", BATCH, data=body, headers=partner.headers | JSON)


async def delete(partner: Partner, *entries: Any) -> Answer:
    return await partner.call("DELETE", BATCH, json={"domains": entries})


async def status(partner: Partner, accepted: Answer) -> Answer:
    return await partner.call("GET", f"{BATCH}/status/{accepted.body['request_id']}")


async def work_off(service: Service) -> None:
    """What a monitor would do, until no batch is open."""
    perform = Processing(service.database).perform
    runner = Runner(service.database, batches, perform, concurrency=2, random=Random(1), poll_seconds=0.05)
    async with beside(runner.run()):
        await until_equal(lambda: open_batches(service), 0)


async def open_batches(service: Service) -> int:
    async with service.database.connection() as connection:
        count: int = await connection.fetchval("select count(*) from batches where due_at is not null")
    return count


def failures(answer: dict[str, Any]) -> list[tuple[str | None, str | None, str]]:
    """Domain, subdomain and reason of each failed entry."""
    assert answer["failedDomains"]["count"] == len(answer["failedDomains"]["domains"])
    return [(each["domain"], each["subdomain"], each["reason"]) for each in answer["failedDomains"]["domains"]]


async def test_a_batch_of_domains_is_accepted_and_then_added(service: Service) -> None:
    mine = Watcher(await service.partner())
    entries = [entry(number, userId=f"user-{number}", subdomain="www" if number % 2 else None) for number in range(100)]

    accepted = await create(mine.partner, *entries)

    assert (accepted.status, accepted.body) == (
        201,
        {"request_id": accepted.body["request_id"], "status": "IN_PROGRESS"},
    )
    assert (await status(mine.partner, accepted)).body == {
        "batchId": accepted.body["request_id"],
        "applicationId": mine.partner.id,
        "status": "IN_PROGRESS",
        "successfulDomains": 0,
    }
    await work_off(service)
    answer = await status(mine.partner, accepted)
    assert (answer.status, answer.body) == (
        200,
        {
            "batchId": accepted.body["request_id"],
            "applicationId": mine.partner.id,
            "status": "SUCCESS",
            "successfulDomains": 100,
        },
    )
    listed = (await mine.list(limit=200)).body["domains"]
    assert [(each["domain"], each["subdomain"], each["user_id"], each["source"]) for each in listed] == [
        (f"d{number}.test", "www" if number % 2 else None, f"user-{number}", "api") for number in range(100)
    ]


async def test_entries_are_done_in_their_order(service: Service) -> None:
    mine = Watcher(await service.partner())
    await create(mine.partner, entry(dnsRecords=[WWW]), entry(dnsRecords=[APEX]), entry(dnsRecords=[MAIL]))
    accepted = await delete(mine.partner, {"domain": "d0.test"}, {"domain": "d0.test"})
    await create(mine.partner, entry(1))
    await work_off(service)
    assert (await status(mine.partner, accepted)).body["failedDomains"]["count"] == 1
    assert [each["domain"] for each in (await mine.list()).body["domains"]] == ["d1.test"]


async def test_what_fails_in_a_batch_of_domains_fails_by_itself(service: Service) -> None:
    mine = Watcher(await service.partner())
    wrong = [
        entry(1, dnsRecords=[]),
        entry(2, dnsRecords=[{**WWW, "ttl": 0}]),
        entry(3, domain="www.d3.test", subdomain="x"),
        entry(4, subdomain="a..b"),
        {"dnsRecords": [WWW]},
        {"domain": "d6.test"},
        {"domain": 7, "subdomain": ["x"], "dnsRecords": [WWW]},
        {"domain": "a\0.test", "subdomain": "x" * 5000, "dnsRecords": [WWW]},
        "d8.test",
        None,
    ]
    accepted = await create(mine.partner, entry(0), *wrong, entry(9))
    assert accepted.status == 201

    await work_off(service)

    answer = (await status(mine.partner, accepted)).body
    assert (answer["status"], answer["successfulDomains"]) == ("FAILED", 2)
    assert failures(answer) == [
        ("d1.test", None, "dnsRecords: List should have at least 1 item after validation, not 0"),
        ("d2.test", None, "dnsRecords[0]: ttl must be a whole number of seconds greater than 0"),
        ("www.d3.test", "x", "domain: not an apex: send d3.test as the domain and www as the subdomain"),
        ("d4.test", "a..b", f"subdomain: {LABELS}"),
        (None, None, "domain: Field required"),
        ("d6.test", None, "dnsRecords: Field required"),
        (None, None, "domain: Input should be a valid string"),
        (None, None, "domain: labels are of letters, digits and inner hyphens, up to 63 characters each"),
        (None, None, "an entry is a JSON object"),
        (None, None, "an entry is a JSON object"),
    ]
    assert [each["domain"] for each in (await mine.list()).body["domains"]] == ["d0.test", "d9.test"]


async def test_a_batch_of_which_every_entry_is_wrong_has_failed(service: Service) -> None:
    mine = await service.partner()
    accepted = await create(mine, {"domain": "x"})
    await work_off(service)
    answer = (await status(mine, accepted)).body
    assert (answer["status"], answer["successfulDomains"], answer["failedDomains"]["count"]) == ("FAILED", 0, 1)


async def test_a_batch_of_deletions_deletes_what_it_can(service: Service) -> None:
    mine, theirs = Watcher(await service.partner()), Watcher(await service.partner())
    await create(mine.partner, *map(entry, range(4)), entry(2, subdomain="www"))
    await theirs.add(domain="d9.test")
    await work_off(service)
    await mine.records("DELETE", WWW, domain="d3.test")

    accepted = await delete(
        mine.partner,
        {"domain": "D0.Test.", "subdomain": None},
        {"domain": "d1.test", "deleteOnlyIfEmpty": True},
        {"domain": "d2.test", "subdomain": "WWW", "deleteOnlyIfEmpty": False},
        {"domain": "d3.test", "deleteOnlyIfEmpty": True},
        {"domain": "d9.test"},
        {"domain": "d3.test", "subdomain": "absent", "unknown": 1},
        {"domain": "not a name"},
        7,
    )

    assert (accepted.status, accepted.body["status"]) == (201, "IN_PROGRESS")
    await work_off(service)
    answer = (await status(mine.partner, accepted)).body
    assert (answer["status"], answer["successfulDomains"]) == ("FAILED", 3)
    assert failures(answer) == [
        ("d1.test", None, "Monitored records remain for this domain"),
        ("d9.test", None, "Domain not monitored or already deleted"),
        ("d3.test", "absent", "Domain not monitored or already deleted"),
        ("not a name", None, "domain: labels are of letters, digits and inner hyphens, up to 63 characters each"),
        (None, None, "an entry is a JSON object"),
    ]
    assert [each["domain"] for each in (await mine.list()).body["domains"]] == ["d1.test", "d2.test"]
    assert (await theirs.get("d9.test")).status == 200


async def test_a_thousand_deletions_are_one_batch(service: Service) -> None:
    mine = await service.partner()
    longest = ".".join(["x" * 60] * 4)[:240]
    accepted = await delete(mine, *({"domain": f"d{number}.test", "subdomain": longest} for number in range(1000)))
    assert accepted.status == 201
    await work_off(service)
    answer = (await status(mine, accepted)).body
    assert (answer["status"], answer["failedDomains"]["count"]) == ("FAILED", 1000)


async def test_a_hundred_domains_with_a_hundred_records_are_one_batch(service: Service) -> None:
    mine = await service.partner()
    records = [{**TXT, "host": f"host-number-{number}"} for number in range(100)]
    entries = [entry(number, dnsRecords=records) for number in range(100)]
    assert len(json.dumps({"domains": entries})) > 2_600_000
    assert (await create(mine, *entries)).status == 201
    assert (await create(mine, *entries, *entries)).status == 413


@pytest.mark.parametrize(("call", "most"), [(create, 100), (delete, 1000)])
async def test_a_batch_has_a_largest_size(service: Service, call: Any, most: int) -> None:
    mine = await service.partner()
    answer = await call(mine, *map(entry, range(most + 1)))
    assert (answer.status, answer.message) == (400, f"The maximum number of domains is {most}")
    assert await open_batches(service) == 0
    assert (await call(mine, *map(entry, range(most)))).status == 201


async def test_a_batch_of_nothing_is_400(service: Service) -> None:
    mine = await service.partner()
    nothing = (b"", b"{}", b'{"domains": []}', b'{"domains": null}', b"[]", b"{", b'{"domain": "d0.test"}')
    for method in ("POST", "DELETE"):
        for body in nothing:
            answer = await mine.call(method, BATCH, data=body, headers=mine.headers | JSON)
            assert (answer.status, answer.message) == (400, "Missing domains in the request body."), body


async def test_domains_are_a_list(service: Service) -> None:
    mine = await service.partner()
    for method in ("POST", "DELETE"):
        for domains in ("d0.test", {"domain": "d0.test"}, 7, True):
            answer = await mine.call(method, BATCH, json={"domains": domains})
            assert (answer.status, answer.message) == (400, "Invalid 'domains' parameter"), domains


async def test_a_status_nobody_knows_is_404(service: Service) -> None:
    mine = await service.partner()
    for batch_id in ("bat_" + "0" * 32, "0", "%00", "bat_", "a" * 3000):
        answer = await mine.call("GET", f"{BATCH}/status/{batch_id}")
        assert (answer.status, answer.message) == (404, "No status for this request id")


async def test_another_applications_status_is_403(service: Service) -> None:
    mine, theirs = await service.partner(), await service.partner()
    answer = await status(theirs, await create(mine, entry()))
    assert (answer.status, answer.message) == (403, "The request belongs to a different application")


async def test_a_status_is_remembered_for_seven_days(service: Service) -> None:
    mine, theirs = await service.partner(), await service.partner()
    accepted = await create(mine, entry())
    await work_off(service)
    for age, expected in (("6 days 23 hours 59 minutes", 200), ("7 days", 404)):
        async with service.database.transaction() as connection:
            await connection.execute(f"update batches set submitted_at = now() - interval '{age}'")
        assert (await status(mine, accepted)).status == expected
    assert (await status(theirs, accepted)).status == 404
