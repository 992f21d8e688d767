"""/monitor/domains: entries added, replaced and removed, one by one and at once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from common import monitored_changes
from common.db.monitored_domains import Labels, MonitoredKey
from tests.integration.api.conftest import Service
from tests.integration.api.watching import ABSENT, APEX, DOMAIN, MAIL, WWW, Watcher, due_now


async def test_an_added_domain_is_monitored(service: Service, mine: Watcher) -> None:
    answer = await mine.add(WWW, MAIL, userId="user-7", jobId="job-9", userEmail="user@customer.test")

    assert (answer.status, answer.body) == (201, {"message": "Domain successfully added"})
    found = (await mine.get()).body
    assert re.fullmatch("mon_[0-9a-f]+", found.pop("id"))
    assert found == {
        "domain": DOMAIN,
        "subdomain": None,
        "date_added": datetime.now(UTC).date().isoformat(),
        "dns_records": [WWW, MAIL],
        "records_present": None,
        "records_missing": None,
        "missing_records_last_detected": None,
        "last_checked_at": None,
        "is_active": True,
        "user_id": "user-7",
        "job_id": "job-9",
        "source": "api",
        "application_id": mine.partner.id,
    }
    assert await due_now(service.database)


async def test_fields_nobody_knows_are_ignored_and_null_is_not_sent(mine: Watcher) -> None:
    answer = await mine.add({**WWW, "priority": None, "note": "x"}, subdomain=None, userId=None, extra={"a": 1})

    assert answer.status == 201
    found = (await mine.get()).body
    assert (found["dns_records"], found["user_id"]) == ([WWW], None)


async def test_adding_again_replaces_the_records_and_keeps_the_rest(mine: Watcher) -> None:
    await mine.add(WWW, userId="user-7", jobId="job-9")
    first = (await mine.get()).body

    again = await mine.add(MAIL, jobId="job-10")

    assert (again.status, again.message) == (201, "Domain successfully added")
    assert (await mine.get()).body == first | {"dns_records": [MAIL], "job_id": "job-10"}
    assert (await mine.list()).body["totalItems"] == 1


async def test_the_same_record_twice_is_one(mine: Watcher) -> None:
    await mine.add(WWW, {**WWW, "ttl": 60, "host": "WWW", "value": "Apps.Partner.Test."}, APEX)

    assert (await mine.get()).body["dns_records"] == [WWW, APEX]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("CUSTOMER.Test.", "customer.test"), ("Bücher.example", "xn--bcher-kva.example"), ("shop.co.uk", "shop.co.uk")],
)
async def test_spellings_of_a_name_are_one_domain(mine: Watcher, sent: str, stored: str) -> None:
    assert (await mine.add(domain=sent)).status == 201

    assert (await mine.get(stored)).body["domain"] == stored
    assert (await mine.get(sent)).body["domain"] == stored
    assert (await mine.list(domain=sent)).body["domain"] == stored
    assert (await mine.records("GET", domain=sent)).body == [WWW]
    assert (await mine.put(APEX, domain=sent)).status == 200
    assert (await mine.delete(domain=sent)).status == 200
    assert (await mine.list()).body["totalItems"] == 0


NOT_APEXES = [
    *("www.customer.test", "co.uk", "", ".", "a..test", "192.0.2.1", "customer.test:80", "*.test", "-a.test"),
    *("http://customer.test", "customer.test\n", "a\0.test", "x" * 64 + ".test", "a." * 130 + "test", 7, None),
]


async def test_what_is_no_apex_is_refused(mine: Watcher) -> None:
    for domain in NOT_APEXES:
        for call in (mine.add, mine.put, mine.delete):
            answer = await call(domain=domain)
            assert (answer.status, answer.message) == (400, "Invalid 'domain' parameter"), domain
    assert (await mine.list()).body["totalItems"] == 0


async def test_what_is_no_subdomain_is_refused(mine: Watcher) -> None:
    for subdomain in ("", ".", "www.", "a..b", "-a", "a b", "*", "x" * 64, "a/b", 7, "\0"):
        for call in (mine.add, mine.put, mine.delete):
            answer = await call(subdomain=subdomain)
            assert (answer.status, answer.message) == (400, "Invalid 'subdomain' parameter"), subdomain
    assert (await mine.list()).body["totalItems"] == 0


async def test_a_whole_name_is_no_subdomain_to_add_but_one_that_is_watched_can_go(
    service: Service, mine: Watcher
) -> None:
    for subdomain in (f"www.{DOMAIN}", DOMAIN.upper()):
        answer = await mine.add(subdomain=subdomain)
        assert (answer.status, answer.message) == (400, "Invalid 'subdomain' parameter"), subdomain
        assert (await mine.put(subdomain=subdomain)).status == 404
    assert (await mine.list()).body["totalItems"] == 0
    assert (await mine.add(subdomain=f"www{DOMAIN}")).status == 201
    key = MonitoredKey(mine.partner.id, DOMAIN, f"www.{DOMAIN}")  # as it could be added once
    async with service.database.transaction() as connection:
        await monitored_changes.add(connection, key, (), Labels())
    assert (await mine.delete(subdomain=f"www.{DOMAIN}")).status == 200


async def test_labels_are_text_that_can_be_kept(mine: Watcher) -> None:
    for field in ("userId", "jobId", "userEmail"):
        for value in (7, ["a"], "a\0b", "x" * 5000):
            answer = await mine.add(**{field: value})
            assert (answer.status, answer.message) == (400, f"Invalid '{field}' parameter"), value


async def test_apex_and_subdomains_are_entries_of_their_own(mine: Watcher) -> None:
    await mine.add(APEX)
    await mine.add(WWW, subdomain="WWW")
    await mine.add(MAIL, subdomain="_dmarc.Bücher")

    assert (await mine.get()).body["dns_records"] == [APEX]
    assert (await mine.get(subdomain="www")).body["dns_records"] == [WWW]
    assert (await mine.list(domain=DOMAIN)).body["subdomain"] is None
    assert (await mine.records("GET", subdomain="_dmarc.bücher")).body == [MAIL]
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == [
        None,
        "www",
        "_dmarc.xn--bcher-kva",
    ]
    assert (await mine.get(subdomain="other")).status == 404


async def test_two_applications_may_watch_one_name(service: Service, mine: Watcher) -> None:
    theirs = Watcher(await service.partner())
    await mine.add(WWW)
    for answer in (await theirs.get(), await theirs.records("GET"), await theirs.list(domain=DOMAIN)):
        assert (answer.status, answer.message) == (404, ABSENT)
    assert (await theirs.put(APEX)).status == 404
    assert (await theirs.delete()).status == 400
    assert (await theirs.records("DELETE", WWW)).status == 404

    await theirs.add(APEX)

    assert (await mine.get()).body["dns_records"] == [WWW]
    assert (await theirs.get()).body["dns_records"] == [APEX]
    assert (await theirs.delete()).status == 200
    assert (await mine.get()).body["dns_records"] == [WWW]


async def test_put_replaces_the_monitored_set(mine: Watcher) -> None:
    await mine.add(WWW, userId="user-7", jobId="job-9")

    answer = await mine.put(APEX, MAIL)

    assert (answer.status, answer.body) == (200, {"message": "Domain successfully updated."})
    found = (await mine.get()).body
    assert (found["dns_records"], found["user_id"], found["job_id"]) == ([APEX, MAIL], "user-7", "job-9")
    await mine.put(APEX, userId="user-8", jobId="not known to PUT")
    found = (await mine.get()).body
    assert (found["user_id"], found["job_id"]) == ("user-8", "job-9")


async def test_put_of_what_is_not_monitored_is_404(mine: Watcher) -> None:
    await mine.add(subdomain="www")
    answer = await mine.put(APEX)
    assert (answer.status, answer.message) == (404, "Domain not monitored")


async def test_delete_removes_the_entry_named_and_no_other(mine: Watcher) -> None:
    for subdomain in (None, "www", "app"):
        await mine.add(subdomain=subdomain)

    answer = await mine.delete(subdomain="www")

    assert (answer.status, answer.body) == (200, {"message": "Domain successfully deleted"})
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == [None, "app"]
    assert (await mine.delete(deleteOnlyIfEmpty=None)).status == 200
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == ["app"]


async def test_delete_of_what_is_not_monitored_or_deleted_already_is_400(mine: Watcher) -> None:
    assert (await mine.delete()).status == 400
    await mine.add()
    assert (await mine.delete()).status == 200
    answer = await mine.delete()
    assert (answer.status, answer.message) == (400, "Domain not monitored or already deleted")
    assert (await mine.get()).status == 404


async def test_delete_only_if_empty_keeps_what_has_records(mine: Watcher) -> None:
    await mine.add(WWW)

    answer = await mine.delete(deleteOnlyIfEmpty=True)

    assert (answer.status, answer.message) == (400, "Monitored records remain for this domain")
    assert (await mine.get()).body["dns_records"] == [WWW]
    assert (await mine.delete(deleteOnlyIfEmpty="yes")).message == "Invalid 'deleteOnlyIfEmpty' parameter"
    await mine.records("DELETE", WWW)
    assert (await mine.delete(deleteOnlyIfEmpty=True)).status == 200


async def test_delete_looks_at_its_body_only(mine: Watcher) -> None:
    await mine.add()
    bodies: tuple[dict[str, Any], ...] = ({}, {"json": {}}, {"json": {"domain": None}})
    for body in bodies:
        answer = await mine.partner.call("DELETE", "/monitor/domains", params={"domain": DOMAIN}, **body)
        assert answer.status == 400
    await mine.add(subdomain="www")
    await mine.partner.call("DELETE", "/monitor/domains", params={"subdomain": "www"}, json={"domain": DOMAIN})
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == ["www"]


async def test_of_many_posts_at_once_one_entry_remains(mine: Watcher) -> None:
    sets = [[{**WWW, "host": f"h{number}"}] for number in range(20)]

    answers = await asyncio.gather(*(mine.add(*records) for records in sets))

    assert Counter(answer.status for answer in answers) == {201: 20}
    listed = (await mine.list()).body
    assert listed["totalItems"] == 1
    assert listed["domains"][0]["dns_records"] in sets


async def test_a_put_that_meets_a_delete_is_before_or_after_it(service: Service, mine: Watcher) -> None:
    for _ in range(10):
        await mine.add(WWW)
        put, delete, again = await asyncio.gather(mine.put(APEX), mine.delete(), mine.delete())
        assert put.status in (200, 404)
        assert sorted([delete.status, again.status]) == [200, 400]
        assert (await mine.get()).status == 404
    async with service.database.connection() as connection:
        assert not await connection.fetchval("select count(*) from monitored_tallies")


async def test_adds_and_deletes_at_once_leave_a_list_that_is_true(service: Service, mine: Watcher) -> None:
    async def come_and_go(name: str, times: int) -> None:
        for time in range(times):
            await (mine.delete(domain=name) if time % 2 else mine.add(domain=name))

    await asyncio.gather(*(come_and_go(f"d{number % 6}.test", 5 + number % 2) for number in range(18)))

    listed = [each["domain"] for each in (await mine.list(limit=200)).body["domains"]]
    assert [
        (await mine.list(offset=offset, limit=1)).body["domains"][0]["domain"] for offset in range(len(listed))
    ] == (listed)
    async with service.database.connection() as connection:
        tallied = await connection.fetch("select span, sum(domains)::int as domains from monitored_tallies group by 1")
    assert {row["span"]: row["domains"] for row in tallied} == (
        dict.fromkeys(("day", "minute", "second"), len(listed)) if listed else {}
    )
