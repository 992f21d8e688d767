"""Monitor's single requests, over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.db import monitor_health, monitored_domains
from common.db.monitored_domains import Key, Labels
from tests.integration.api.conftest import Service
from tests.integration.api.watching import APEX, DOMAIN, EVIDENCE, MAIL, WWW, Watcher, check

ABSENT = "Domain not monitored or application not authorized for it"


async def watcher(service: Service) -> Watcher:
    return Watcher(await service.partner())


async def due_now(service: Service) -> bool:
    async with service.database.connection() as connection:
        return bool(await connection.fetchval("select due_at <= now() and lease_until is null from checks"))


# Adding ---------------------------------------------------------------------------------------------------


async def test_an_added_domain_is_monitored(service: Service) -> None:
    mine = await watcher(service)

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
    assert await due_now(service)


async def test_fields_nobody_knows_are_ignored_and_null_is_not_sent(service: Service) -> None:
    mine = await watcher(service)

    answer = await mine.add({**WWW, "priority": None, "note": "x"}, subdomain=None, userId=None, extra={"a": 1})

    assert answer.status == 201
    found = (await mine.get()).body
    assert (found["dns_records"], found["user_id"]) == ([WWW], None)


async def test_adding_again_replaces_the_records_and_keeps_the_rest(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW, userId="user-7", jobId="job-9")
    first = (await mine.get()).body

    again = await mine.add(MAIL, jobId="job-10")

    assert (again.status, again.message) == (201, "Domain successfully added")
    assert (await mine.get()).body == first | {"dns_records": [MAIL], "job_id": "job-10"}
    assert (await mine.list()).body["totalItems"] == 1


async def test_the_same_record_twice_is_one(service: Service) -> None:
    mine = await watcher(service)

    await mine.add(WWW, {**WWW, "ttl": 60, "host": "WWW", "value": "Apps.Partner.Test."}, APEX)

    assert (await mine.get()).body["dns_records"] == [WWW, APEX]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("CUSTOMER.Test.", "customer.test"), ("Bücher.example", "xn--bcher-kva.example"), ("shop.co.uk", "shop.co.uk")],
)
async def test_spellings_of_a_name_are_one_domain(service: Service, sent: str, stored: str) -> None:
    mine = await watcher(service)

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


async def test_what_is_no_apex_is_refused(service: Service) -> None:
    mine = await watcher(service)
    for domain in NOT_APEXES:
        for call in (mine.add, mine.put, mine.delete):
            answer = await call(domain=domain)
            assert (answer.status, answer.message) == (400, "Invalid 'domain' parameter"), domain
    assert (await mine.list()).body["totalItems"] == 0


async def test_what_is_no_subdomain_is_refused(service: Service) -> None:
    mine = await watcher(service)
    for subdomain in ("", ".", "www.", "a..b", "-a", "a b", "*", "x" * 64, "a/b", 7, "\0"):
        for call in (mine.add, mine.put, mine.delete):
            answer = await call(subdomain=subdomain)
            assert (answer.status, answer.message) == (400, "Invalid 'subdomain' parameter"), subdomain
    assert (await mine.list()).body["totalItems"] == 0


async def test_a_whole_name_is_no_subdomain_to_add_but_one_that_is_watched_can_go(service: Service) -> None:
    mine = await watcher(service)
    for subdomain in (f"www.{DOMAIN}", DOMAIN.upper()):
        answer = await mine.add(subdomain=subdomain)
        assert (answer.status, answer.message) == (400, "Invalid 'subdomain' parameter"), subdomain
        assert (await mine.put(subdomain=subdomain)).status == 404
    assert (await mine.list()).body["totalItems"] == 0
    assert (await mine.add(subdomain=f"www{DOMAIN}")).status == 201
    key = Key(mine.partner.id, DOMAIN, f"www.{DOMAIN}")  # as it could be added once
    async with service.database.transaction() as connection:
        await monitored_domains.add(connection, key, (), Labels())
    assert (await mine.delete(subdomain=f"www.{DOMAIN}")).status == 200


async def test_labels_are_text_that_can_be_kept(service: Service) -> None:
    mine = await watcher(service)
    for field in ("userId", "jobId", "userEmail"):
        for value in (7, ["a"], "a\0b", "x" * 5000):
            answer = await mine.add(**{field: value})
            assert (answer.status, answer.message) == (400, f"Invalid '{field}' parameter"), value


async def test_apex_and_subdomains_are_entries_of_their_own(service: Service) -> None:
    mine = await watcher(service)
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


async def test_two_applications_may_watch_one_name(service: Service) -> None:
    mine, theirs = await watcher(service), await watcher(service)
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


# Updating and deleting ------------------------------------------------------------------------------------


async def test_put_replaces_the_monitored_set(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW, userId="user-7", jobId="job-9")

    answer = await mine.put(APEX, MAIL)

    assert (answer.status, answer.body) == (200, {"message": "Domain successfully updated."})
    found = (await mine.get()).body
    assert (found["dns_records"], found["user_id"], found["job_id"]) == ([APEX, MAIL], "user-7", "job-9")
    await mine.put(APEX, userId="user-8", jobId="not known to PUT")
    found = (await mine.get()).body
    assert (found["user_id"], found["job_id"]) == ("user-8", "job-9")


async def test_put_of_what_is_not_monitored_is_404(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(subdomain="www")
    answer = await mine.put(APEX)
    assert (answer.status, answer.message) == (404, "Domain not monitored")


async def test_delete_removes_the_entry_named_and_no_other(service: Service) -> None:
    mine = await watcher(service)
    for subdomain in (None, "www", "app"):
        await mine.add(subdomain=subdomain)

    answer = await mine.delete(subdomain="www")

    assert (answer.status, answer.body) == (200, {"message": "Domain successfully deleted"})
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == [None, "app"]
    assert (await mine.delete(deleteOnlyIfEmpty=None)).status == 200
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == ["app"]


async def test_delete_of_what_is_not_monitored_or_deleted_already_is_400(service: Service) -> None:
    mine = await watcher(service)
    assert (await mine.delete()).status == 400
    await mine.add()
    assert (await mine.delete()).status == 200
    answer = await mine.delete()
    assert (answer.status, answer.message) == (400, "Domain not monitored or already deleted")
    assert (await mine.get()).status == 404


async def test_delete_only_if_empty_keeps_what_has_records(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW)

    answer = await mine.delete(deleteOnlyIfEmpty=True)

    assert (answer.status, answer.message) == (400, "Monitored records remain for this domain")
    assert (await mine.get()).body["dns_records"] == [WWW]
    assert (await mine.delete(deleteOnlyIfEmpty="yes")).message == "Invalid 'deleteOnlyIfEmpty' parameter"
    await mine.records("DELETE", WWW)
    assert (await mine.delete(deleteOnlyIfEmpty=True)).status == 200


async def test_delete_looks_at_its_body_only(service: Service) -> None:
    mine = await watcher(service)
    await mine.add()
    for body in ({}, {"json": {}}, {"json": {"domain": None}}):
        answer = await mine.partner.call("DELETE", "/monitor/domains", params={"domain": DOMAIN}, **body)
        assert answer.status == 400
    await mine.add(subdomain="www")
    await mine.partner.call("DELETE", "/monitor/domains", params={"subdomain": "www"}, json={"domain": DOMAIN})
    assert [each["subdomain"] for each in (await mine.list()).body["domains"]] == ["www"]


# Records --------------------------------------------------------------------------------------------------


async def test_records_are_read_added_replaced_and_removed(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW)

    added = await mine.records("POST", APEX)
    assert (added.status, added.body) == (200, {"message": "DNS Records successfully updated"})
    assert (await mine.records("GET")).body == [WWW, APEX]

    replaced = await mine.records("PUT", MAIL, APEX)
    assert (replaced.status, replaced.body) == (201, {"message": "DNS Records successfully updated"})
    assert (await mine.records("GET")).body == [MAIL, APEX]

    removed = await mine.records("DELETE", {**APEX, "ttl": 1})
    assert (removed.status, removed.body) == (200, {"message": "DNS record(s) successfully deleted"})
    answer = await mine.records("GET")
    assert (answer.status, answer.body) == (200, [MAIL])


async def test_added_records_leave_existing_ones_as_they_are(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW)
    await mine.records("POST", {**WWW, "ttl": 60}, APEX)
    assert (await mine.records("GET")).body == [WWW, APEX]


@pytest.mark.parametrize(
    ("kept", "unwanted"),
    [
        (WWW, {**WWW, "type": "NS"}),
        (WWW, {**WWW, "host": "www2"}),
        (WWW, {**WWW, "value": "other.partner.test"}),
        (MAIL, {**MAIL, "priority": "20"}),
    ],
)
async def test_records_that_do_not_match_are_kept(service: Service, kept: Any, unwanted: Any) -> None:
    mine = await watcher(service)
    await mine.add(kept)
    assert (await mine.records("DELETE", unwanted)).status == 200
    assert (await mine.records("GET")).body == [kept]


@pytest.mark.parametrize(
    ("kept", "unwanted"),
    [
        (WWW, {**WWW, "ttl": 1, "host": "WWW", "value": "APPS.partner.test."}),
        (MAIL, {**MAIL, "ttl": 1, "value": "Mail.Partner.Test."}),
        (
            {"type": "TXT", "host": "@", "value": "v=spf1 -all", "ttl": 1},
            {"type": "TXT", "host": "@", "value": '"v=spf1" " -all"', "ttl": 2},
        ),
        (
            {"type": "AAAA", "host": "@", "value": "2001:db8::1", "ttl": 1},
            {"type": "AAAA", "host": "@", "value": "2001:DB8:0::1", "ttl": 1},
        ),
    ],
)
async def test_records_are_matched_as_the_dns_means_them(service: Service, kept: Any, unwanted: Any) -> None:
    mine = await watcher(service)
    await mine.add(kept)
    assert (await mine.records("DELETE", unwanted)).status == 200
    assert (await mine.records("GET")).body == []


async def test_records_of_a_subdomain_are_its_own(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(APEX)
    await mine.add(WWW, subdomain="www")
    await mine.records("POST", MAIL, subdomain="www")
    assert (await mine.records("GET", subdomain="www")).body == [WWW, MAIL]
    await mine.records("PUT", MAIL)
    assert (await mine.records("GET")).body == [MAIL]
    await mine.records("DELETE", WWW, MAIL, subdomain="www")
    assert (await mine.records("GET", subdomain="www")).body == []


async def test_what_is_not_monitored_is_404_on_every_path(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW)
    answers = [await mine.get(DOMAIN, subdomain=subdomain) for subdomain in ("", "a..b", "other", "\0")]
    for domain in ("absent.test", "www.customer.test", "no..name", "192.0.2.1", "%00", "a b", "co.uk"):
        answers += [await mine.records(method, WWW, domain=domain) for method in ("GET", "POST", "PUT", "DELETE")]
        answers += [await mine.get(domain), await mine.partner.call("GET", f"/monitor/domains/{domain}/checks")]
    for answer in answers:
        assert (answer.status, answer.message) == (404, ABSENT)


NOT_RECORDS = [
    {**WWW, "type": "HTTPS"},
    {**WWW, "type": "cname"},
    {**WWW, "type": None},
    {**WWW, "host": ""},
    {**WWW, "host": " "},
    {**WWW, "host": 7},
    {**WWW, "value": ""},
    {**WWW, "value": None},
    {**WWW, "value": "a\0b"},
    {**WWW, "ttl": 0},
    {**WWW, "ttl": -1},
    {**WWW, "ttl": "300"},
    {**WWW, "ttl": 1.5},
    {**WWW, "ttl": True},
    {**WWW, "ttl": None},
    {**WWW, "priority": "10"},
    {**MAIL, "priority": 10},
    {name: value for name, value in WWW.items() if name != "ttl"},
    "www CNAME apps.partner.test",
    None,
]


async def test_a_record_that_is_none_changes_nothing(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(APEX)
    for wrong in NOT_RECORDS:
        answers = [await call(MAIL, wrong) for call in (mine.add, mine.put)]
        answers += [await mine.records(method, MAIL, wrong) for method in ("POST", "PUT", "DELETE")]
        for answer in answers:
            assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter"), wrong
    assert (await mine.records("GET")).body == [APEX]


async def test_records_are_a_list_that_is_not_empty(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(APEX)
    calls = [("POST", "/monitor/domains"), ("PUT", "/monitor/domains")]
    calls += [(method, f"/monitor/domains/{DOMAIN}/records") for method in ("POST", "PUT", "DELETE")]
    bodies = [{"domain": DOMAIN, "dnsRecords": records} for records in ([], None, "CNAME", {"0": WWW}, 1)]
    for method, path in calls:
        for body in (*bodies, {"domain": DOMAIN}):
            answer = await mine.partner.call(method, path, json=body)
            assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter"), body
    assert (await mine.records("GET")).body == [APEX]


async def test_what_is_no_object_is_400(service: Service) -> None:
    mine = await watcher(service)
    headers = mine.partner.headers | {"Content-Type": "application/json"}
    for method, path in [("POST", "/monitor/domains"), ("DELETE", f"/monitor/domains/{DOMAIN}/records")]:
        for body in (b"", b"{", b"[]", b'"a"', b"null"):
            answer = await mine.partner.call(method, path, data=body, headers=headers)
            assert (answer.status, answer.message) == (400, "Invalid request body"), body


async def test_no_name_has_more_records_than_can_be_checked(service: Service) -> None:
    mine = await watcher(service)
    many = [{**WWW, "host": f"h{number}"} for number in range(501)]
    assert (await mine.add(*many)).status == 400
    assert (await mine.add(*many[:499])).status == 201
    assert (await mine.records("POST", *many[:500])).status == 200
    answer = await mine.records("POST", many[500])
    assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")
    assert len((await mine.records("GET")).body) == 500


# What checks found, and edits -----------------------------------------------------------------------------


async def test_what_a_check_found_is_shown(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW, APEX)
    await check(service.database, present=[WWW], missing=[APEX])

    found = (await mine.get()).body

    assert (found["records_present"], found["records_missing"]) == ([WWW], [APEX])
    for moment in (found["last_checked_at"], found["missing_records_last_detected"]):
        assert abs(datetime.now(UTC) - datetime.fromisoformat(moment)) < timedelta(minutes=1)
    checks = await mine.partner.call("GET", f"/monitor/domains/{DOMAIN}/checks")
    assert checks.body == {
        "domain": DOMAIN,
        "subdomain": None,
        "state": "missing",
        "last_checked_at": found["last_checked_at"],
        "evidence": [
            {**statement, "server": server}
            for statement, server in zip(
                EVIDENCE, ["resolver 1", "resolver 2", "resolver 1", "9.9.9.9:53", "authority 1"], strict=True
            )
        ],
    }


@pytest.mark.parametrize(
    ("edit", "present", "missing", "state"),
    [
        (("POST", MAIL), [WWW], [APEX], "missing"),
        (("DELETE", APEX), [WWW], [], "present"),
        (("DELETE", WWW), [], [APEX], "missing"),
        (("PUT", MAIL), [], [], "unchecked"),
        (("PUT", {**APEX, "ttl": 5}, WWW), [WWW], [{**APEX, "ttl": 5}], "missing"),
        (("DELETE", WWW, APEX), [], [], "present"),
    ],
)
async def test_an_edit_keeps_what_is_known_of_the_rest_and_asks_for_a_check(
    service: Service, edit: Any, present: list[Any], missing: list[Any], state: str
) -> None:
    mine = await watcher(service)
    await mine.add(WWW, APEX)
    await check(service.database, present=[WWW], missing=[APEX])

    await mine.records(*edit)

    found = (await mine.get()).body
    assert (found["records_present"], found["records_missing"]) == (present, missing)
    async with service.database.connection() as connection:
        assert await connection.fetchval("select state from monitored_domains") == state
    assert await due_now(service)


async def test_an_edit_that_changes_nothing_asks_for_no_check(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(WWW, APEX)
    await check(service.database, present=[WWW, APEX], missing=[])
    await mine.add(WWW, APEX, userId="user-8")
    await mine.records("POST", WWW)
    await mine.records("DELETE", MAIL)
    assert not await due_now(service)
    assert (await mine.get()).body["user_id"] == "user-8"


# The list -------------------------------------------------------------------------------------------------


async def test_the_list_is_paged_by_rows(service: Service) -> None:
    mine, theirs = await watcher(service), await watcher(service)
    names = [f"d{number:02d}.test" for number in range(23)]
    for name in names:
        await mine.add(domain=name)
    await theirs.add(domain="theirs.test")

    async def listed(**query: Any) -> tuple[list[str], int, int]:
        answer = await mine.list(**query)
        assert answer.status == 200
        assert set(answer.body) == {"domains", "page", "totalItems"}
        return [each["domain"] for each in answer.body["domains"]], answer.body["page"], answer.body["totalItems"]

    assert await listed() == (names[:10], 0, 10)
    assert await listed(offset=5) == (names[5:15], 5, 10)
    assert await listed(offset=20, limit=200) == (names[20:], 20, 3)
    assert await listed(offset=22, limit=1) == (names[22:], 22, 1)
    assert await listed(offset=23) == ([], 23, 0)
    assert await listed(offset=10**15, limit=1) == ([], 10**15, 0)
    assert (await mine.list(limit=1)).body["domains"] == [(await mine.get(names[0])).body]
    await mine.delete(domain=names[0])
    assert await listed(limit=2) == (names[1:3], 0, 2)


NO_QUERIES = [
    ({"offset": "-1"}, "offset"),
    ({"offset": "a"}, "offset"),
    ({"offset": ""}, "offset"),
    ({"offset": "1" * 19}, "offset"),
    ({"limit": "0"}, "limit"),
    ({"limit": "201"}, "limit"),
    ({"limit": "1.5"}, "limit"),
    ({"limit": "-5"}, "limit"),
    ({"from_date": "2026-01-01"}, "to_date"),
    ({"to_date": "2026-01-01"}, "from_date"),
    ({"from_date": "2026-01-01", "to_date": "2026-02-30"}, "to_date"),
    ({"from_date": "01/01/2026", "to_date": "2026-02-01"}, "from_date"),
    ({"from_date": "", "to_date": ""}, "from_date"),
]


async def test_a_query_that_makes_no_sense_is_400(service: Service) -> None:
    mine = await watcher(service)
    for query, parameter in NO_QUERIES:
        answer = await mine.list(**query)
        assert (answer.status, answer.message) == (400, f"Invalid '{parameter}' parameter"), query


async def test_dates_filter_by_the_day_a_domain_was_added(service: Service) -> None:
    mine = await watcher(service)
    days = ["2026-03-01T00:00:00Z", "2026-03-01T23:59:59.999999Z", "2026-03-02T00:00:00Z", "2026-03-04T12:00:00Z"]
    async with service.database.transaction() as connection:
        for number, moment in enumerate(days):
            await connection.execute(
                "insert into monitored_domains (id, application_id, domain, dns_records, date_added)"
                " values ($1, $2, $1 || '.test', '[]', $3)",
                f"d{number}",
                mine.partner.id,
                datetime.fromisoformat(moment),
            )

    async def between(first: str, last: str, **query: Any) -> list[str]:
        answer = await mine.list(from_date=first, to_date=last, **query)
        return [each["domain"].removesuffix(".test") for each in answer.body["domains"]]

    assert await between("2026-03-01", "2026-03-01") == ["d0", "d1"]
    assert await between("2026-03-01", "2026-03-02") == ["d0", "d1", "d2"]
    assert await between("2026-03-02", "2026-03-04") == ["d2", "d3"]
    assert await between("2026-03-03", "2026-03-03") == []
    assert await between("2026-03-04", "2026-03-01") == []
    assert await between("0001-01-01", "9999-12-31") == ["d0", "d1", "d2", "d3"]
    assert await between("2026-03-01", "2026-03-02", offset=1, limit=1) == ["d1"]
    assert (await mine.get("d3.test")).body["date_added"] == "2026-03-04"


async def test_a_domain_in_the_query_is_answered_with_that_domain(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(APEX)
    await mine.add(WWW, subdomain="www")
    assert (await mine.list(domain=DOMAIN)).body == (await mine.get()).body
    assert (await mine.list(domain=DOMAIN, subdomain="www")).body == (await mine.get(subdomain="www")).body
    for absent in ("absent.test", "no..name", ""):
        answer = await mine.list(domain=absent)
        assert (answer.status, answer.message) == (404, ABSENT)


# The service, and who asks --------------------------------------------------------------------------------


async def test_the_status_is_what_was_measured_last_and_not_long_ago(service: Service) -> None:
    mine = await watcher(service)

    async def status() -> Any:
        answer = await mine.partner.call("GET", "/monitor/status")
        assert (answer.status, set(answer.body)) == (200, {"status", "executedAt"})
        return answer.body

    assert await status() == {"status": "unhealthy", "executedAt": None}
    for is_healthy, expected in ((True, "healthy"), (False, "unhealthy"), (True, "healthy")):
        async with service.database.transaction() as connection:
            await monitor_health.record(connection, is_healthy=is_healthy, reason="as it may be")
        found = await status()
        assert found["status"] == expected
        assert abs(datetime.now(UTC) - datetime.fromisoformat(found["executedAt"])) < timedelta(minutes=1)
    async with service.database.transaction() as connection:
        await connection.execute("update monitor_health set executed_at = executed_at - interval '10 minutes'")
    assert (await status())["status"] == "unhealthy"


PATHS = [
    *((method, "/monitor/domains") for method in ("POST", "PUT", "DELETE", "GET")),
    *((method, "/monitor/domains/batch") for method in ("POST", "DELETE")),
    *((method, f"/monitor/domains/{DOMAIN}/records") for method in ("POST", "PUT", "DELETE", "GET")),
    ("GET", f"/monitor/domains/{DOMAIN}"),
    ("GET", f"/monitor/domains/{DOMAIN}/checks"),
    ("GET", "/monitor/domains/batch/status/bat_1"),
    ("GET", "/monitor/status"),
]


async def test_every_endpoint_asks_who_is_there(service: Service) -> None:
    mine, other = await service.partner(), await service.partner()
    expired = {"Authorization": "Bearer " + mine.token(lifetime=timedelta(minutes=-5))}
    mistaken = {"applicationId": other.id, "Authorization": "Bearer " + mine.token()}
    for method, path in PATHS:
        for headers in ({}, {"applicationId": mine.id}, {"applicationId": mine.id} | expired):
            answer = await mine.call(method, path, headers=headers)
            assert (answer.status, answer.message) == (401, "Unauthorized"), (method, path)
        answer = await mine.call(method, path, headers=mistaken)
        assert (answer.status, answer.message) == (403, "Forbidden"), (method, path)


# At once --------------------------------------------------------------------------------------------------


async def test_of_many_posts_at_once_one_entry_remains(service: Service) -> None:
    mine = await watcher(service)
    sets = [[{**WWW, "host": f"h{number}"}] for number in range(20)]

    answers = await asyncio.gather(*(mine.add(*records) for records in sets))

    assert Counter(answer.status for answer in answers) == {201: 20}
    listed = (await mine.list()).body
    assert listed["totalItems"] == 1
    assert listed["domains"][0]["dns_records"] in sets


async def test_records_added_at_once_are_all_there(service: Service) -> None:
    mine = await watcher(service)
    await mine.add(APEX)
    records = [{**WWW, "host": f"h{number}"} for number in range(20)]

    await asyncio.gather(*(mine.records("POST", record) for record in records))

    found = (await mine.records("GET")).body
    assert found[0] == APEX
    assert sorted(found[1:], key=str) == sorted(records, key=str)


async def test_a_put_that_meets_a_delete_is_before_or_after_it(service: Service) -> None:
    mine = await watcher(service)
    for _ in range(10):
        await mine.add(WWW)
        put, delete, again = await asyncio.gather(mine.put(APEX), mine.delete(), mine.delete())
        assert put.status in (200, 404)
        assert sorted([delete.status, again.status]) == [200, 400]
        assert (await mine.get()).status == 404
    async with service.database.connection() as connection:
        assert not await connection.fetchval("select count(*) from monitored_tallies")


async def test_adds_and_deletes_at_once_leave_a_list_that_is_true(service: Service) -> None:
    mine = await watcher(service)

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


@pytest.mark.parametrize(
    ("record", "hint"),
    [
        ({**APEX, "value": "not-an-ip"}, "dnsRecords[1]: value must be an IPv4 address, such as 192.0.2.1"),
        ({**APEX, "type": "AAAA"}, "dnsRecords[1]: value must be an IPv6 address, such as 2001:db8::1"),
        ({**WWW, "value": "https://apps.partner.test"}, "dnsRecords[1]: value must be a host name"),
        ({**WWW, "host": "www.customer.test"}, "dnsRecords[1]: host is relative to customer.test: send www"),
        ({**MAIL, "priority": 10}, "dnsRecords[1]: priority must be text"),
    ],
)
async def test_a_record_that_can_never_be_found_is_refused(service: Service, record: Any, hint: str) -> None:
    mine = Watcher(await service.partner())
    assert (await mine.add(APEX)).status == 201
    for answer in (
        await mine.add(WWW, record),
        await mine.put(WWW, record),
        await mine.records("POST", WWW, record),
        await mine.records("PUT", WWW, record),
    ):
        assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")
        assert answer.body["hint"].startswith(hint)
    assert (await mine.records("GET")).body == [APEX]


async def test_the_records_of_a_name_are_bounded_in_octets(service: Service) -> None:
    mine = Watcher(await service.partner())
    half = {"type": "TXT", "host": "@", "value": "x" * 40_000, "ttl": 300}
    assert (await mine.add(half)).status == 201
    for answer in (
        await mine.records("POST", {**half, "value": "y" * 40_000}),
        await mine.put(half, {**half, "value": "y" * 40_000}),
    ):
        assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")
        assert answer.body["hint"] == "at most 65536 octets of hosts and values under one name"
    assert (await mine.records("GET")).body == [half]
