"""What monitored domains show: findings of checks, lists and their filters, the service's status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.db import monitor_health
from tests.integration.api.conftest import Service
from tests.integration.api.installation import end_monitors, lease_monitor
from tests.integration.api.watching import ABSENT, APEX, DOMAIN, EVIDENCE, MAIL, WWW, Watcher, check, due_now


async def test_what_a_check_found_is_shown(service: Service, mine: Watcher) -> None:
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
    service: Service, mine: Watcher, edit: Any, present: list[Any], missing: list[Any], state: str
) -> None:
    await mine.add(WWW, APEX)
    await check(service.database, present=[WWW], missing=[APEX])

    await mine.records(*edit)

    found = (await mine.get()).body
    assert (found["records_present"], found["records_missing"]) == (present, missing)
    async with service.database.connection() as connection:
        assert await connection.fetchval("select state from monitored_domains") == state
    assert await due_now(service.database)


async def test_an_edit_that_changes_nothing_asks_for_no_check(service: Service, mine: Watcher) -> None:
    await mine.add(WWW, APEX)
    await check(service.database, present=[WWW, APEX], missing=[])
    await mine.add(WWW, APEX, userId="user-8")
    await mine.records("POST", WWW)
    await mine.records("DELETE", MAIL)
    assert not await due_now(service.database)
    assert (await mine.get()).body["user_id"] == "user-8"


async def test_the_list_is_paged_by_rows(service: Service, mine: Watcher) -> None:
    theirs = Watcher(await service.partner())
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
    ({"subdomain": "www"}, "domain"),
]


async def test_a_query_that_makes_no_sense_is_400(mine: Watcher) -> None:
    for query, parameter in NO_QUERIES:
        answer = await mine.list(**query)
        assert (answer.status, answer.message) == (400, f"Invalid '{parameter}' parameter"), query


async def test_dates_filter_by_the_day_a_domain_was_added(service: Service, mine: Watcher) -> None:
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


async def test_a_domain_in_the_query_is_answered_with_that_domain(mine: Watcher) -> None:
    await mine.add(APEX)
    await mine.add(WWW, subdomain="www")
    assert (await mine.list(domain=DOMAIN)).body == (await mine.get()).body
    assert (await mine.list(domain=DOMAIN, subdomain="www")).body == (await mine.get(subdomain="www")).body
    for absent in ("absent.test", "no..name", ""):
        answer = await mine.list(domain=absent)
        assert (answer.status, answer.message) == (404, ABSENT)


async def test_the_status_is_what_was_measured_last_and_not_long_ago(service: Service, mine: Watcher) -> None:
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


@pytest.mark.parametrize("stopped", [("checks",), None], ids=["checks have stopped", "no monitor"])
async def test_the_status_is_unhealthy_once_no_monitor_checks(
    service: Service, mine: Watcher, stopped: tuple[str] | None
) -> None:
    """However lately a monitor has measured."""
    async with service.database.transaction() as connection:
        await monitor_health.record(connection, is_healthy=True)
    if stopped is None:
        await end_monitors(service.database)
    else:
        await lease_monitor(service.database, stopped=stopped)
    assert (await mine.partner.call("GET", "/monitor/status")).body["status"] == "unhealthy"


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
