"""Checks from a row that is due to its outcome and its event: real Postgres, a real name server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour
from common.db import checks, shares
from common.db.pool import Connection, Database
from common.dns.evidence import MOST_STATEMENTS
from common.errors import DatabaseUnavailable
from common.records import RECORD_TYPES
from monitor.checks.checking import Checking
from tests.waiting import until

from . import parts
from .parts import a, check_now, events_of, record, row_of, told, watch

DOMAIN = "customer.example"


async def test_a_record_goes_missing_and_comes_back(shop: Database, server: NameServer, checking: Checking) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    server.zone.add(f"www.{DOMAIN}", "CNAME", "shop.partner.example")
    records = [a(), record("CNAME", "www", "Shop.Partner.example.")]
    await watch(shop, DOMAIN, records)

    await check_now(shop, checking)
    row = await row_of(shop, DOMAIN)
    assert (row["state"], row["records_present"], row["records_missing"]) == ("present", records, [])
    assert row["missing_records_last_detected"] is None
    assert await told(shop) == []

    server.zone.remove(f"www.{DOMAIN}")
    await check_now(shop, checking)
    row = await row_of(shop, DOMAIN)
    assert (row["state"], row["records_present"], row["records_missing"]) == ("missing", [a()], [records[1]])
    assert row["missing_records_last_detected"] == row["last_checked_at"]

    await check_now(shop, checking)
    assert await told(shop) == [("missing", ["www"])]

    server.zone.add(f"www.{DOMAIN}", "CNAME", "shop.partner.example")
    await check_now(shop, checking)
    await check_now(shop, checking)
    assert await told(shop) == [("missing", ["www"]), ("restored", [])]
    row = await row_of(shop, DOMAIN)
    assert (row["state"], row["records_missing"]) == ("present", [])
    assert row["missing_records_last_detected"] < row["last_checked_at"]


async def test_the_event_says_what_was_found_and_links_to_what_is_missing(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a(), a("shop")], subdomain="shop")
    await check_now(shop, checking)

    (event,) = await events_of(shop)
    assert (event["type"], event["domain"], event["subdomain"]) == ("domain.record_missing", DOMAIN, "shop")
    assert (event["fields"]["user_id"], event["fields"]["job_id"]) == ("user-1", "job-1")
    assert event["fields"]["data"] == {"records_propagated": [a()], "records_non_propagated": [a("shop")]}
    base, _, share_id = event["fields"]["connect_link"].rpartition("/share/")
    async with shop.transaction() as connection:
        share = await shares.get_share(connection, share_id)
    assert base == parts.BASE_URL
    assert share is not None
    assert share.records == [a("shop")]
    assert len(await parts.fetch(shop, "select from deliveries where status = 'pending'")) == 1


ALL_TYPES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "A": ("@", "192.0.2.7", {}),
    "AAAA": ("@", "2001:DB8::7", {}),
    "CNAME": ("www", "Target.Example.net.", {}),
    "MX": ("@", "mail.example.net", {"priority": "10"}),
    "TXT": ("_dmarc", '"v=DMARC1;" " p=none"', {}),
    "NS": ("sub", "ns.example.net", {}),
    "SOA": ("@", "ns.example.net. host.example.net. 5 7200 3600 1209600 300", {}),
    "SRV": ("_sip._tcp", "10 5 5060 sip.example.net", {}),
    "PTR": ("7", "host.example.net", {}),
    "CAA": ("@", '0 issue "ca.example.net"', {}),
}


async def test_all_types_are_found_and_missed(shop: Database, server: NameServer, checking: Checking) -> None:
    assert set(ALL_TYPES) == set(RECORD_TYPES)
    records = [record(kind, host, value, **more) for kind, (host, value, more) in ALL_TYPES.items()]
    for kind, (host, value, more) in ALL_TYPES.items():
        owner = DOMAIN if host == "@" else f"{host}.{DOMAIN}"
        server.zone.add(owner, kind, f"{more['priority']} {value}" if more else value)
    await watch(shop, DOMAIN, records)
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["records_missing"] == []

    for kind, (host, _, _) in ALL_TYPES.items():
        server.zone.remove(DOMAIN if host == "@" else f"{host}.{DOMAIN}", kind)
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["records_missing"] == records


async def test_wildcards_are_records_like_others(shop: Database, server: NameServer, checking: Checking) -> None:
    server.zone.add(f"*.{DOMAIN}", "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a("*"), a("anything")])
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["records_missing"] == []

    server.zone.remove(f"*.{DOMAIN}")
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["records_missing"] == [a("*"), a("anything")]


async def test_a_flattened_apex_is_compared_by_its_addresses(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    server.zone.add(DOMAIN, "A", "198.51.100.2")
    server.zone.add("shop.partner.example", "CNAME", "edge.partner.example")
    server.zone.add("edge.partner.example", "A", "198.51.100.1")
    server.zone.add("edge.partner.example", "A", "198.51.100.2")
    await watch(shop, DOMAIN, [record("CNAME", "@", "shop.partner.example.")])
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["state"] == "present"

    server.zone.replace(DOMAIN, "A", "203.0.113.9")
    await check_now(shop, checking)
    assert (await row_of(shop, DOMAIN))["state"] == "missing"


@pytest.mark.parametrize("behaviour", [Behaviour.SERVFAIL, Behaviour.REFUSED, Behaviour.TIMEOUT])
async def test_what_could_not_be_asked_changes_nothing(
    shop: Database, server: NameServer, checking: Checking, behaviour: Behaviour
) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    server.zone.add(f"www.{DOMAIN}", "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a(), a("www"), a("gone")])
    await check_now(shop, checking)
    before = await row_of(shop, DOMAIN)

    for name in (DOMAIN, f"www.{DOMAIN}", f"gone.{DOMAIN}"):
        server.zone.misbehave(name, behaviour)
    await check_now(shop, checking)
    after = await row_of(shop, DOMAIN)
    for column in ("state", "records_present", "records_missing", "missing_records_last_detected", "reported_missing"):
        assert after[column] == before[column]
    assert {said["outcome"] for said in after["evidence"]} <= {"servfail", "timeout"}
    assert await told(shop) == [("missing", ["gone"])]

    for name in (DOMAIN, f"www.{DOMAIN}", f"gone.{DOMAIN}"):
        server.zone.misbehave(name, None)
    server.zone.add(f"gone.{DOMAIN}", "A", "192.0.2.1")
    server.zone.misbehave(f"www.{DOMAIN}", behaviour)
    await check_now(shop, checking)
    assert len(await told(shop)) == 1, "restored needs all records in one check"
    server.zone.misbehave(f"www.{DOMAIN}", None)
    await check_now(shop, checking)
    assert await told(shop) == [("missing", ["gone"]), ("restored", [])]


async def test_a_further_record_is_told_of_and_a_partial_return_is_not(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    for name in (DOMAIN, f"www.{DOMAIN}", f"api.{DOMAIN}"):
        server.zone.add(name, "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a(), a("www"), a("api")])
    await check_now(shop, checking)
    server.zone.remove(f"www.{DOMAIN}")
    await check_now(shop, checking)
    server.zone.remove(f"api.{DOMAIN}")
    await check_now(shop, checking)
    assert await told(shop) == [("missing", ["www"]), ("missing", ["www", "api"])]

    server.zone.add(f"www.{DOMAIN}", "A", "192.0.2.1")
    await check_now(shop, checking)
    assert len(await told(shop)) == 2
    server.zone.add(f"api.{DOMAIN}", "A", "192.0.2.1")
    await check_now(shop, checking)
    assert (await told(shop))[2:] == [("restored", [])]


async def test_editing_a_missing_record_away_tells_nobody(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a(), a("www")])
    await check_now(shop, checking)
    await watch(shop, DOMAIN, [a()])
    await check_now(shop, checking)

    assert await told(shop) == [("missing", ["www"])]
    row = await row_of(shop, DOMAIN)
    assert (row["state"], row["records_present"], row["records_missing"]) == ("present", [a()], [])


async def test_a_partner_told_of_a_record_hears_of_its_return_though_another_was_edited_away(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await watch(shop, DOMAIN, [a("one"), a("two")])
    await check_now(shop, checking)
    server.zone.add(f"one.{DOMAIN}", "A", "192.0.2.1")
    await check_now(shop, checking)
    await watch(shop, DOMAIN, [a("one")])
    await check_now(shop, checking)

    assert await told(shop) == [("missing", ["one", "two"]), ("restored", [])]


async def test_a_new_or_changed_domain_is_checked_at_once(shop: Database, server: NameServer, dsn: str) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    checking = parts.make_checking(  # no routine checks at all, and only to be woken
        shop, parts.address_of(server), checks_per_second=0, poll_seconds=600
    )
    async with parts.running(checking, dsn=dsn):
        await watch(shop, DOMAIN, [a()])
        await until(lambda: _is(shop, "present"))
        await watch(shop, DOMAIN, [a("www")])
        await until(lambda: _is(shop, "missing"))


async def _is(database: Database, state: str) -> bool:
    return bool((await row_of(database, DOMAIN))["state"] == state)


async def test_an_outcome_counts_only_for_the_records_it_looked_at(shop: Database, server: NameServer) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a()])
    (check,) = await parts.claim(shop, lease_seconds=60)
    await watch(shop, DOMAIN, [a("www")])
    outcome = checks.CheckOutcome(
        check, "present", check.records, (), False, False, True, None, None, [], check.claimed_at
    )
    async with shop.transaction() as connection:
        assert await checks.record_outcomes(connection, [outcome]) == set()
    assert (await row_of(shop, DOMAIN))["last_checked_at"] is None


async def test_an_outcome_counts_only_under_the_last_claim(shop: Database, server: NameServer) -> None:
    await watch(shop, DOMAIN, [a()])

    async def record(check: checks.Check) -> bool:
        outcome = checks.CheckOutcome(
            check, "present", check.records, (), False, False, True, None, None, [], check.claimed_at
        )
        async with shop.transaction() as connection:
            return check.id in await checks.record_outcomes(connection, [outcome])

    (first,), (second,) = await parts.claim(shop), await parts.claim(shop)
    assert second.fence > first.fence
    assert not await record(first)
    assert await record(second)
    async with shop.transaction() as connection:
        assert await checks.extend(connection, [second], lease_seconds=60) == set(), "it is done"


async def test_who_is_asked_for_while_a_check_runs_is_due_when_it_ends(shop: Database) -> None:
    await watch(shop, DOMAIN, [a()])
    (check,) = await parts.claim(shop, lease_seconds=60)
    async with shop.transaction() as connection:
        await connection.execute("update monitored_domains set alarm_held_at = now()")
        await checks.release_alarms(connection, for_seconds=60)
    later = check.claimed_at + timedelta(hours=1)
    outcome = checks.CheckOutcome(check, "present", check.records, (), False, False, True, None, None, [], later)
    async with shop.transaction() as connection:
        assert await checks.record_outcomes(connection, [outcome]) == {check.id}
    assert [each.id for each in await parts.claim(shop)] == [check.id]


class LosesAnAnswer:
    """A database whose first commit is done, but its answer lost with the connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.committed = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self._database.transaction() as connection:
            yield connection
        self.committed += 1
        if self.committed == 1:
            raise DatabaseUnavailable("the connection died after the commit")


async def test_an_outcome_is_told_once_though_its_commit_was_not_answered(shop: Database, server: NameServer) -> None:
    checking = parts.make_checking(shop, parts.address_of(server))
    losing = LosesAnAnswer(shop)
    checking._outcomes._database = losing  # type: ignore[assignment]
    async with parts.running(checking):
        await watch(shop, DOMAIN, [a("www")])
        await check_now(shop, checking)

        async def is_repeated() -> bool:
            return losing.committed > 1

        await until(is_repeated)
    assert await told(shop) == [("missing", ["www"])]


async def test_several_monitors_share_the_work(
    shop: Database, server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, claims = checks.claim, list[tuple[str, int]]()

    async def note_claim(*arguments: Any, **options: Any) -> list[checks.Check]:
        claimed = await claim(*arguments, **options)
        claims.extend((check.domain, check.attempts) for check in claimed)
        return claimed

    monkeypatch.setattr(checks, "claim", note_claim)
    checkings = [parts.make_checking(shop, parts.address_of(server)) for _ in range(3)]
    domains = {f"c{number}.example" for number in range(60)}
    for domain in domains:
        server.zone.add(domain, "A", "192.0.2.1")
        await watch(shop, domain, [a()])

    async def is_checked() -> bool:
        return await parts.fetch(shop, "select from monitored_domains where last_checked_at is null") == []

    async with parts.running(*checkings):
        await until(is_checked)

    assert {question.name for question in server.zone.questions} == domains
    assert {domain for domain, _ in claims} == domains
    assert len(claims) == len(set(claims)), "a second claim is the next attempt, of a question without an answer"


async def test_deliveries_of_an_alarm_are_superseded_by_the_return(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await watch(shop, DOMAIN, [a()])
    await check_now(shop, checking)
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    await check_now(shop, checking)

    rows = await parts.fetch(shop, "select status from deliveries order by event_id")
    assert [row["status"] for row in rows] == ["superseded", "pending"]


async def test_a_row_that_postgres_will_not_have_spoils_nobody_elses(
    shop: Database, server: NameServer, checking: Checking, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_outcomes = checks.record_outcomes

    async def refuse_one(connection: Any, outcomes: list[checks.CheckOutcome]) -> set[str]:
        if any(outcome.check.domain == "bad.example" for outcome in outcomes):
            raise ValueError("a value that is none")
        return await record_outcomes(connection, outcomes)

    monkeypatch.setattr(checks, "record_outcomes", refuse_one)
    await watch(shop, "bad.example", [a()])
    for number in range(20):
        server.zone.add(f"c{number}.example", "A", "192.0.2.1")
        await watch(shop, f"c{number}.example", [a()])
    await check_now(shop, checking, *(f"c{number}.example" for number in range(20)))

    assert (await row_of(shop, "bad.example"))["last_checked_at"] is None


async def test_a_domain_may_have_very_many_records(shop: Database, server: NameServer, checking: Checking) -> None:
    for number in range(0, 120, 2):
        server.zone.add(f"h{number}.{DOMAIN}", "A", "192.0.2.1")
    await watch(shop, DOMAIN, [a(f"h{number}") for number in range(120)])
    await check_now(shop, checking)

    row = await row_of(shop, DOMAIN)
    assert row["records_present"] == [a(f"h{number}") for number in range(0, 120, 2)]
    assert row["records_missing"] == [a(f"h{number}") for number in range(1, 120, 2)]
    assert len(row["evidence"]) == MOST_STATEMENTS


async def test_names_that_no_host_has_are_looked_for_like_others(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    server.zone.add(DOMAIN, "A", "192.0.2.1")
    server.zone.add(f"one\\032printer.{DOMAIN}", "A", "192.0.2.1")
    records = [
        record("CNAME", "@", "\u2603 is no name"),
        record("CNAME", "@", "no name"),
        a(".".join(["a" * 60] * 4)),
        a(r"no\032printer"),
        a(r"one\032printer"),
    ]
    await watch(shop, DOMAIN, records)
    await check_now(shop, checking)

    row = await row_of(shop, DOMAIN)
    assert (row["records_missing"], row["records_present"]) == (records[:-1], records[-1:])
