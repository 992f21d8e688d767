"""Several issuers in order, and the CAA records that choose among them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from bench.lab.faulty_ca import FaultyCa, faulty_ca
from bench.lab.pebble import Pebble
from common.db import acme_accounts
from common.db.pool import Database
from common.secrets import Keyring
from monitor.certificates.issuer import IssuanceFailed, Issued, Issuer, Placed
from tests.journal import MemoryJournal
from tests.waiting import until

from .parts import DOMAIN, Answering, Attempts, opened


@pytest.fixture
async def second(pebble: Pebble) -> AsyncIterator[FaultyCa]:
    async with faulty_ca(pebble) as ca:
        yield ca


@pytest.fixture
async def issuer(
    faulty: FaultyCa, second: FaultyCa, pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> AsyncIterator[Issuer]:
    """The first CA, and another if that gives none."""
    faulty.meta = {"caaIdentities": ["first.example"]}
    second.meta = {"caaIdentities": ["second.example"]}
    async with opened(pebble, database, keyring, answering, faulty.directory, second.directory) as issuer:
        yield issuer


async def allow(pebble: Pebble, name: str, *values: str) -> None:
    await pebble.tell_dns("add-caa", host=f"{name}.", policies=[{"tag": "issue", "value": value} for value in values])


async def test_first_in_the_operators_order_has_the_order(issuer: Issuer, faulty: FaultyCa) -> None:
    assert (await Attempts().by(issuer)).issuer == faulty.directory


@pytest.mark.parametrize(
    "fault",
    [
        {"step": "new order", "status": 429, "problem": "rateLimited"},
        {"step": "new order", "status": 503},
        {"step": "new order", "status": 500},
        {"step": "new order", "drop": "before"},
        {"step": "new order", "status": 403, "problem": "caa"},
        {"step": "directory", "status": 503, "times": 1_000},
        {"step": "account", "status": 403, "problem": "unauthorized", "times": 1_000},
    ],
    ids=lambda fault: " ".join(map(str, fault.values())),
)
async def test_next_has_a_try_where_one_gives_none(
    faulty: FaultyCa,
    second: FaultyCa,
    pebble: Pebble,
    database: Database,
    keyring: Keyring,
    answering: Answering,
    fault: dict[str, object],
) -> None:
    """The fault is there first: issuers read directories and look for their accounts as soon as they are opened."""
    faulty.fail(**fault)  # type: ignore[arg-type]
    async with opened(pebble, database, keyring, answering, faulty.directory, second.directory) as issuer:
        assert (await Attempts().by(issuer)).issuer == second.directory


async def test_own_ledger_sends_on_to_the_next(issuer: Issuer, faulty: FaultyCa, second: FaultyCa) -> None:
    attempts = Attempts(journal=MemoryJournal(refuses=(faulty.directory,)))
    assert (await attempts.by(issuer)).issuer == second.directory
    assert faulty.orders == []


async def test_domain_that_cannot_be_validated_is_not_tried_elsewhere(
    issuer: Issuer, second: FaultyCa, answering: Answering
) -> None:
    answering.is_wrong = True
    with pytest.raises(IssuanceFailed, match="could not validate"):
        await Attempts().by(issuer)
    assert second.orders == []


async def test_order_that_stands_at_one_is_not_repeated_elsewhere_for_a_while(
    issuer: Issuer, faulty: FaultyCa, second: FaultyCa, pebble: Pebble
) -> None:
    attempts = Attempts()
    faulty.fail("finalize", drop="after", times=3)
    with pytest.raises(IssuanceFailed):
        await attempts.by(issuer)
    faulty.fail("order", status=503, times=3)
    with pytest.raises(IssuanceFailed) as failed:
        await attempts.by(issuer)
    assert failed.value.is_open
    assert second.orders == []
    assert (await attempts.by(issuer)).issuer == faulty.directory
    assert pebble.count("Issued certificate serial") == 1


async def test_order_that_stands_at_one_that_is_gone_for_long_is_placed_elsewhere(
    issuer: Issuer, faulty: FaultyCa, second: FaultyCa
) -> None:
    attempts = Attempts()
    faulty.fail("challenge", status=503, times=6)
    with pytest.raises(IssuanceFailed):
        await attempts.by(issuer)
    placed = attempts.journal.placed
    assert placed is not None
    attempts.journal.placed = Placed(placed.issuer, placed.url, placed.placed_at - timedelta(hours=1))
    assert (await attempts.by(issuer)).issuer == second.directory


async def test_words_and_time_when_all_give_none(issuer: Issuer, faulty: FaultyCa, second: FaultyCa) -> None:
    faulty.fail("new order", status=429, problem="rateLimited", detail="one", headers={"Retry-After": "7200"})
    second.fail("new order", status=429, problem="rateLimited", detail="two", headers={"Retry-After": "3600"})
    with pytest.raises(IssuanceFailed, match=r"one.*; .*two") as failed:
        await Attempts().by(issuer)
    assert failed.value.kind == "rate_limited"
    assert failed.value.retry_after_seconds == 3600


async def test_certificate_of_another_issuer_is_to_be_replaced_within_a_day(issuer: Issuer) -> None:
    for other in ("internal", "https://gone.example/dir"):
        window = await issuer.renewal_window(Issued(other, "whatever"))
        assert window is not None
        assert window.end - window.start == timedelta(days=1)
        assert abs(window.start - datetime.now(UTC)) < timedelta(minutes=1)
    with pytest.raises(IssuanceFailed, match="no issuer of ours"):
        await issuer.revoke(Issued("https://gone.example/dir", "whatever"), 0)


# CAA ----------------------------------------------------------------------------------------------------


async def test_caa_record_chooses_among_issuers(
    issuer: Issuer, pebble: Pebble, faulty: FaultyCa, second: FaultyCa
) -> None:
    await allow(pebble, "customer.example", "second.example")
    assert (await Attempts().by(issuer)).issuer == second.directory
    await allow(pebble, DOMAIN, "first.example")
    assert (await Attempts().by(issuer)).issuer == faulty.directory


async def test_caa_record_that_names_others_only_is_obeyed(
    issuer: Issuer, pebble: Pebble, faulty: FaultyCa, second: FaultyCa
) -> None:
    await allow(pebble, "customer.example", "elsewhere.example")
    attempts = Attempts()
    with pytest.raises(
        IssuanceFailed, match=r"CAA records of customer\.example let elsewhere\.example issue"
    ) as failed:
        await attempts.by(issuer)
    assert failed.value.kind == "caa"
    assert attempts.journal.entries == []
    assert faulty.orders == second.orders == []


async def test_names_of_authorities_are_kept_for_those_who_do_not_ask_them(
    issuer: Issuer, database: Database, faulty: FaultyCa, second: FaultyCa
) -> None:
    await Attempts().by(issuer)
    async with database.connection() as connection:
        for ca, name in ((faulty, "first.example"), (second, "second.example")):
            identity = await until(partial(acme_accounts.find_identity, connection, ca.directory))
            assert identity is not None
            assert identity.names == (name,)


async def test_caa_record_binds_to_our_account(issuer: Issuer, pebble: Pebble, database: Database) -> None:
    await Attempts("other.example").by(issuer)
    async with database.connection() as connection:
        account = await connection.fetchval("select url from acme_accounts")
    await allow(pebble, DOMAIN, f"first.example; accounturi={account}; validationmethods=http-01")
    await Attempts().by(issuer)
    await allow(pebble, "shop.other.example", f"first.example; accounturi={account}0")
    with pytest.raises(IssuanceFailed, match="CAA"):
        await Attempts("shop.other.example").by(issuer)


async def test_dns_that_cannot_be_asked_is_no_permission(issuer: Issuer, pebble: Pebble) -> None:
    await pebble.tell_dns("set-servfail", host=f"{DOMAIN}.")
    attempts = Attempts()
    with pytest.raises(IssuanceFailed, match="could not be looked up") as failed:
        await attempts.by(issuer)
    assert failed.value.kind == "unavailable"
    assert attempts.journal.entries == []
    await pebble.tell_dns("clear-servfail", host=f"{DOMAIN}.")
    await attempts.by(issuer)
