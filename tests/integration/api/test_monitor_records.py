"""/monitor/domains/{domain_name}/records: records read, added, replaced and removed, and what is none."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.watching import ABSENT, APEX, DOMAIN, MAIL, WWW, Watcher


async def test_records_are_read_added_replaced_and_removed(mine: Watcher) -> None:
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


async def test_added_records_leave_existing_ones_as_they_are(mine: Watcher) -> None:
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
async def test_records_that_do_not_match_are_kept(mine: Watcher, kept: Any, unwanted: Any) -> None:
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
async def test_records_are_matched_as_the_dns_means_them(mine: Watcher, kept: Any, unwanted: Any) -> None:
    await mine.add(kept)
    assert (await mine.records("DELETE", unwanted)).status == 200
    assert (await mine.records("GET")).body == []


async def test_records_of_a_subdomain_are_its_own(mine: Watcher) -> None:
    await mine.add(APEX)
    await mine.add(WWW, subdomain="www")
    await mine.records("POST", MAIL, subdomain="www")
    assert (await mine.records("GET", subdomain="www")).body == [WWW, MAIL]
    await mine.records("PUT", MAIL)
    assert (await mine.records("GET")).body == [MAIL]
    await mine.records("DELETE", WWW, MAIL, subdomain="www")
    assert (await mine.records("GET", subdomain="www")).body == []


async def test_what_is_not_monitored_is_404_on_every_path(mine: Watcher) -> None:
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


async def test_a_record_that_is_none_changes_nothing(mine: Watcher) -> None:
    await mine.add(APEX)
    for wrong in NOT_RECORDS:
        answers = [await call(MAIL, wrong) for call in (mine.add, mine.put)]
        answers += [await mine.records(method, MAIL, wrong) for method in ("POST", "PUT", "DELETE")]
        for answer in answers:
            assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter"), wrong
    assert (await mine.records("GET")).body == [APEX]


async def test_records_are_a_list_that_is_not_empty(mine: Watcher) -> None:
    await mine.add(APEX)
    calls = [("POST", "/monitor/domains"), ("PUT", "/monitor/domains")]
    calls += [(method, f"/monitor/domains/{DOMAIN}/records") for method in ("POST", "PUT", "DELETE")]
    bodies = [
        {"domain": DOMAIN, "dnsRecords": records}
        for records in cast("tuple[Any, ...]", ([], None, "CNAME", {"0": WWW}, 1))
    ]
    for method, path in calls:
        for body in (*bodies, {"domain": DOMAIN}):
            answer = await mine.partner.call(method, path, json=body)
            assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter"), body
    assert (await mine.records("GET")).body == [APEX]


async def test_what_is_no_object_is_400(mine: Watcher) -> None:
    headers = mine.partner.headers | {"Content-Type": "application/json"}
    for method, path in [("POST", "/monitor/domains"), ("DELETE", f"/monitor/domains/{DOMAIN}/records")]:
        for body in (b"", b"{", b"[]", b'"a"', b"null"):
            answer = await mine.partner.call(method, path, data=body, headers=headers)
            assert (answer.status, answer.message) == (400, "Invalid request body"), body


async def test_no_name_has_more_records_than_can_be_checked(mine: Watcher) -> None:
    many = [{**WWW, "host": f"h{number}"} for number in range(501)]
    assert (await mine.add(*many)).status == 400
    assert (await mine.add(*many[:499])).status == 201
    assert (await mine.records("POST", *many[:500])).status == 200
    answer = await mine.records("POST", many[500])
    assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")
    assert len((await mine.records("GET")).body) == 500


async def test_records_added_at_once_are_all_there(mine: Watcher) -> None:
    await mine.add(APEX)
    records = [{**WWW, "host": f"h{number}"} for number in range(20)]

    await asyncio.gather(*(mine.records("POST", record) for record in records))

    found = (await mine.records("GET")).body
    assert found[0] == APEX
    assert sorted(found[1:], key=str) == sorted(records, key=str)


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
