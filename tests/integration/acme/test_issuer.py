"""The ACME issuer against Pebble: the whole way, and everything a CA may do on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from bench.lab.pebble import Pebble, running_pebble
from common.db.pool import Database
from common.secrets import Keyring
from monitor.certificates.issuance import check_leaf
from monitor.certificates.issuer import IssuanceFailed, Placed

from .parts import DOMAIN, PHASES, Answering, Attempts, opened

EAB_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"


async def test_order_leads_to_a_chain_that_verifies_and_to_its_phases(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering) as issuer:
        attempt = Attempts()
        issued = await attempt.by(issuer)
    assert issued.issuer == pebble.directory
    leaf, *intermediates = x509.load_pem_x509_certificates(issued.chain.encode())
    root = x509.load_pem_x509_certificate((await pebble.root()).encode())
    PolicyBuilder().store(Store([root])).build_server_verifier(x509.DNSName(DOMAIN)).verify(leaf, intermediates)
    assert list(attempt.phases.as_seconds()) == PHASES
    [reserved, placed] = attempt.journal.entries
    assert reserved == ("reserve", pebble.directory)
    assert placed[1].startswith(pebble.directory.removesuffix("dir"))
    assert len(answering.asked) >= 1


async def test_every_second_nonce_refused_costs_repetitions_only(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with (
        running_pebble(tmp_path, http_port=answering.port, habits={"PEBBLE_WFE_NONCEREJECT": "50"}) as pebble,
        opened(pebble, database, keyring, answering) as issuer,
    ):
        await asyncio.gather(*(Attempts(f"shop{number}.customer.example").by(issuer) for number in range(8)))
        assert pebble.count("There are now 8 orders in the db") == 1


async def test_slow_validation_is_waited_for(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    slow = {"PEBBLE_VA_NOSLEEP": "", "PEBBLE_VA_SLEEPTIME": "3"}
    async with (
        running_pebble(tmp_path, http_port=answering.port, habits=slow) as pebble,
        opened(pebble, database, keyring, answering) as issuer,
    ):
        await asyncio.gather(*(Attempts(f"shop{number}.customer.example").by(issuer) for number in range(6)))


async def test_order_that_comes_back_ready_is_taken_as_it_is(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with (
        running_pebble(tmp_path, http_port=answering.port, habits={"PEBBLE_AUTHZREUSE": "100"}) as pebble,
        opened(pebble, database, keyring, answering) as issuer,
    ):
        await Attempts().by(issuer)
        validated = len(answering.asked)
        again = Attempts()
        await again.by(issuer)
    assert len(answering.asked) == validated
    assert "challenge" not in again.phases.as_seconds()


async def test_wrong_answer_fails_with_the_authoritys_reason_and_the_next_attempt_places_a_new_order(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering) as issuer:
        answering.is_wrong = True
        with pytest.raises(IssuanceFailed, match=f"could not validate {DOMAIN}: .*Welcome to our shop") as failed:
            await attempts.by(issuer)
        assert failed.value.kind == "validation"
        answering.is_wrong = False
        await attempts.by(issuer)
    names = [name for name, _ in attempts.journal.entries]
    assert names == ["reserve", "placed", "failed validation", "reserve", "placed"]
    first, second = (url for name, url in attempts.journal.entries if name == "placed")
    assert first != second
    assert ("failed validation", first) in attempts.journal.entries


async def test_nobody_at_the_domain_is_told_in_plain_words(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with (
        running_pebble(tmp_path, http_port=1, habits={}) as pebble,
        opened(pebble, database, keyring, answering) as issuer,
    ):
        with pytest.raises(IssuanceFailed, match="refused") as failed:
            await Attempts().by(issuer)
        assert failed.value.kind == "validation"


async def test_two_monitors_that_start_at_once_have_one_account(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with (
        opened(pebble, database, keyring, answering) as one,
        opened(pebble, database, keyring, answering) as other,
    ):
        await asyncio.gather(
            Attempts("one.customer.example").by(one),
            Attempts("two.customer.example").by(other),
            Attempts("three.customer.example").by(other),
        )
    assert pebble.count("There are now 1 accounts in memory") == 1
    assert pebble.count("accounts in memory") == 1


async def test_account_is_used_again_after_a_restart(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with running_pebble(tmp_path, http_port=answering.port, habits={"PEBBLE_WFE_NONCEREJECT": "0"}) as pebble:
        for domain in ("one.customer.example", "two.customer.example"):
            async with opened(pebble, database, keyring, answering) as issuer:
                await Attempts(domain).by(issuer)
        assert pebble.count("/sign-me-up") == 1


async def test_account_that_the_authority_has_forgotten_is_made_anew(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering) as issuer:
        await Attempts().by(issuer)
        async with database.transaction() as connection:
            await connection.execute("update acme_accounts set url = url || '0'")
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering) as issuer:
        await attempts.by(issuer)
    assert [name for name, _ in attempts.journal.entries] == ["reserve", "give back", "reserve", "placed"]


async def test_external_account_is_bound(
    tmp_path: Path, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with running_pebble(tmp_path, http_port=answering.port, external_accounts={"kid-1": EAB_KEY}) as pebble:
        authority = pebble.directory.split("/")[2]
        async with opened(pebble, database, keyring, answering) as issuer:
            with pytest.raises(IssuanceFailed, match="no account"):
                await Attempts().by(issuer)
        wrong = f"{authority}=kid-1:{EAB_KEY[::-1]}"
        async with opened(pebble, database, keyring, answering, acme_eab=wrong) as issuer:
            attempts = Attempts()
            with pytest.raises(IssuanceFailed, match="refused"):
                await attempts.by(issuer)
            assert attempts.journal.entries == []  # without an account nothing is ordered
        right = f"{authority}=kid-1:{EAB_KEY}"
        async with opened(pebble, database, keyring, answering, acme_eab=right) as issuer:
            await Attempts().by(issuer)


async def test_revocation_reaches_the_authority_with_its_reason_and_may_be_repeated(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering) as issuer:
        issued = await Attempts().by(issuer)
        serial = x509.load_pem_x509_certificate(issued.chain.encode()).serial_number
        assert (await pebble.certificate_status(serial))["Status"] == "Valid"
        for _ in range(2):
            await issuer.revoke(issued, 4)
        status = await pebble.certificate_status(serial)
    assert (status["Status"], status["Reason"]) == ("Revoked", 4)


async def test_order_is_carried_on_with_its_key_wherever_it_was_left(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    """By another monitor, that knows nothing but what the journal kept; however often, it is the same certificate."""
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering) as issuer:
        first = await attempts.by(issuer)
    async with opened(pebble, database, keyring, answering) as issuer:
        second = await attempts.by(issuer)
    assert first == second
    assert [name for name, _ in attempts.journal.entries] == ["reserve", "placed"]
    check_leaf(second.chain, DOMAIN, attempts.key)


async def test_order_that_is_gone_is_placed_anew(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    attempts = Attempts()
    async with opened(pebble, database, keyring, answering) as issuer:
        await attempts.by(issuer)
        lost = attempts.journal.placed
        assert lost is not None
        attempts.journal.placed = Placed(lost.issuer, lost.url + "0", lost.placed_at)
        await attempts.by(issuer)
    assert [name for name, _ in attempts.journal.entries] == ["reserve", "placed", "reserve", "placed"]
