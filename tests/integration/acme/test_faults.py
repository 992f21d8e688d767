"""A CA that fails at every step: what is tried again, what is not, and that one certificate comes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from bench.lab.faulty_ca import FaultyCa, Step
from bench.lab.pebble import Pebble
from common.db.pool import Database
from common.secrets import Keyring
from monitor.certificates.acme.renewal_information import certificate_id
from monitor.certificates.issuer import IssuanceFailed, Issued
from tests.waiting import until

from .parts import Answering, Attempts, opened

# The steps of an order after it was placed; each may be repeated without a second certificate.
AFTER_PLACING: tuple[Step, ...] = ("order", "authorization", "challenge", "finalize", "certificate")
BEFORE_PLACING: tuple[Step, ...] = ("directory", "nonce", "account")
assert {*AFTER_PLACING, *BEFORE_PLACING} < set(get_args(Step))


async def forget_accounts(database: Database) -> None:
    """So that the account is asked for again."""
    async with database.transaction() as connection:
        await connection.execute("delete from acme_accounts")


@pytest.mark.parametrize(
    "fault", [{"drop": "before"}, {"drop": "after"}, {"status": 503}, {"delay_seconds": 0.3}], ids=str
)
async def test_a_failure_at_any_step_but_the_order_itself_is_met_by_asking_again(
    faulty: FaultyCa,
    pebble: Pebble,
    database: Database,
    keyring: Keyring,
    answering: Answering,
    fault: dict[str, Any],
) -> None:
    steps = (*BEFORE_PLACING, *AFTER_PLACING)
    for number, step in enumerate(steps):
        await forget_accounts(database)
        faulty.fail(step, **fault)
        async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
            attempts = Attempts(f"shop{number}.customer.example")
            await attempts.by(issuer)
            assert [name for name, _ in attempts.journal.entries] == ["reserve", "placed"], step
        assert not any(fault.times for fault in faulty.faults), step
    assert pebble.count("Issued certificate serial") == len(faulty.orders) == len(steps)


async def test_order_whose_answer_was_lost_counts_and_is_not_repeated_at_once(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        faulty.fail("new order", drop="after")
        with pytest.raises(IssuanceFailed, match="broke off the connection") as failed:
            await attempts.by(issuer)
        assert failed.value.kind == "unavailable"
        assert [name for name, _ in attempts.journal.entries] == ["reserve"]
        assert len(faulty.orders) == 1
        await attempts.by(issuer)
    assert [name for name, _ in attempts.journal.entries] == ["reserve", "reserve", "placed"]
    assert len(faulty.orders) == 2


@pytest.mark.parametrize("status", [503, 429])
async def test_order_that_was_refused_is_given_back_and_waits_as_long_as_asked(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering, status: int
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        faulty.fail(
            "new order",
            status=status,
            problem="rateLimited" if status == 429 else "serverInternal",
            detail="too many certificates already issued",
            headers={"Retry-After": "3600"},
        )
        with pytest.raises(IssuanceFailed, match="too many certificates already issued") as failed:
            await attempts.by(issuer)
        assert failed.value.kind == ("rate_limited" if status == 429 else "unavailable")
        assert failed.value.retry_after_seconds == 3600
        assert [name for name, _ in attempts.journal.entries] == ["reserve", "give back"]
        await attempts.by(issuer)
    assert len(faulty.orders) == 1


async def test_an_authority_that_fails_for_long_in_the_middle_is_left_and_its_order_carried_on(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        for step in AFTER_PLACING:
            attempts = Attempts(f"{step}.customer.example")
            faulty.fail(step, drop="after", times=3)
            with pytest.raises(IssuanceFailed) as failed:
                await attempts.by(issuer)
            assert (failed.value.kind, failed.value.is_open) == ("unavailable", True)
            first = await attempts.by(issuer)
            assert await attempts.by(issuer) == first
            assert [name for name, _ in attempts.journal.entries] == ["reserve", "placed"]
    assert pebble.count("Issued certificate serial") == len(AFTER_PLACING)


async def test_authority_that_is_not_ready_to_finalize_is_asked_again(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        faulty.fail("finalize", status=403, problem="orderNotReady", times=2)
        await Attempts().by(issuer)
    assert pebble.count("Issued certificate serial") == 1


async def test_an_authority_that_has_had_enough_in_the_middle_keeps_the_order(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        faulty.fail("order", status=429, problem="rateLimited", headers={"Retry-After": "60"})
        with pytest.raises(IssuanceFailed) as failed:
            await attempts.by(issuer)
        assert (failed.value.kind, failed.value.is_open) == ("rate_limited", True)
        assert failed.value.retry_after_seconds == 60
        await attempts.by(issuer)
    assert len(faulty.orders) == 1


async def test_address_that_is_no_directory_is_told(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, pebble.directory + "ectory") as issuer:
        with pytest.raises(IssuanceFailed, match="refused"):
            await Attempts().by(issuer)


async def test_retry_after_of_an_order_in_the_works_is_honoured(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        await Attempts("first.customer.example").by(issuer)
        answers = faulty.answered["order"]
        answers.clear()

        async def ready() -> None:
            """The order is still in the works when it is first looked at."""
            await until(lambda: answers)

        answering.ready = ready
        faulty.fail("order", headers={"Retry-After": "1"})
        attempts = Attempts()
        await attempts.by(issuer)
    assert attempts.phases.as_seconds()["validation"] >= 1.0
    first, second, *_ = answers
    assert second - first >= 1.0


async def test_unreadable_answers_are_failures_in_plain_words(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    for step in ("directory", "new order"):
        faulty.fail(step, body=b"<html>Welcome</html>", times=9)
        async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
            with pytest.raises(IssuanceFailed, match="cannot be read"):
                await Attempts().by(issuer)
        faulty.faults.clear()


async def test_authority_nobody_can_connect_to_takes_no_reservation(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering, "https://127.0.0.1:1/dir") as issuer:
        with pytest.raises(IssuanceFailed, match=r"127\.0\.0\.1 cannot be connected to") as failed:
            await attempts.by(issuer)
    assert failed.value.kind == "unavailable"
    assert attempts.journal.entries == []


async def test_authority_that_we_do_not_trust_says_which_setting_trusts_more(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, acme_ca_file="") as issuer:
        with pytest.raises(IssuanceFailed, match="FRONTAGE_ACME_CA_FILE"):
            await Attempts().by(issuer)


# Renewal information ------------------------------------------------------------------------------------


async def test_window_is_what_the_authority_suggests(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    faulty.offers_renewal_information = True
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        issued = await Attempts().by(issuer)
        faulty.suggest(certificate_id(issued.chain), start, start + timedelta(days=2))
        window = await issuer.renewal_window(issued)
        assert window is not None
        assert (window.start, window.end) == (start, start + timedelta(days=2))
        assert window.ask_again_seconds == 21_600
        faulty.suggest(certificate_id(issued.chain), start, start)
        with pytest.raises(IssuanceFailed, match="renewal window that cannot be read"):
            await issuer.renewal_window(issued)


async def test_without_renewal_information_there_is_no_window(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        assert await issuer.renewal_window(await Attempts().by(issuer)) is None


async def test_renewal_names_what_it_replaces_and_is_exempt(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    faulty.offers_renewal_information = True
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        old = await Attempts().by(issuer)
        renewal = Attempts()
        await renewal.by(issuer, replaces=old)
        foreign = Attempts()
        await foreign.by(issuer, replaces=Issued("internal", old.chain))
    assert [order.get("replaces") for order in faulty.orders] == [None, certificate_id(old.chain), None]
    assert renewal.journal.exempt == [True]
    assert foreign.journal.exempt == [False]


async def test_renewal_that_may_not_replace_is_ordered_all_the_same(
    faulty: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    faulty.offers_renewal_information = True
    async with opened(pebble, database, keyring, answering, faulty.directory) as issuer:
        old = await Attempts().by(issuer)
        faulty.fail("new order", status=409, problem="alreadyReplaced")
        renewal = Attempts()
        await renewal.by(issuer, replaces=old)
    assert [name for name, _ in renewal.journal.entries] == ["reserve", "give back", "reserve", "placed"]
    assert renewal.journal.exempt == [True, False]


@pytest.mark.parametrize(
    ("offered", "ordered"), [({"shortlived": "six days", "classic": ""}, "shortlived"), ({}, None)]
)
async def test_profile_is_ordered_where_the_authority_offers_it(
    faulty: FaultyCa,
    pebble: Pebble,
    database: Database,
    keyring: Keyring,
    answering: Answering,
    offered: dict[str, str],
    ordered: str | None,
) -> None:
    faulty.meta["profiles"] = offered
    async with opened(pebble, database, keyring, answering, faulty.directory, acme_profile="shortlived") as issuer:
        old = await Attempts().by(issuer)
        await Attempts().by(issuer, replaces=old)
    assert [order.get("profile") for order in faulty.orders] == [ordered, ordered]
