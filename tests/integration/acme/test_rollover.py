"""The key of the accounts changed at Pebble, and a monitor that dies at any step of it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bench.lab.pebble import Pebble
from bench.lab.ports import free_ports
from common.db import acme_accounts
from common.db.pool import Database
from common.secrets import Keyring
from monitor.certificates.acme import opening
from monitor.certificates.acme.account import AcmeAccount, new_key, open_key, thumbprint
from monitor.certificates.acme.rollover import KeyRollover
from monitor.certificates.issuer import IssuanceFailed
from tests.waiting import until, until_equal

from . import parts
from .parts import Answering, Attempts

opened = partial(parts.opened, trusted_key_seconds=-1.0, orders_end_seconds=0.0)
"""Orders that run are not waited for, and the key is read for each."""


async def request(database: Database) -> None:
    async with database.transaction() as connection:
        await acme_accounts.request_rollover(connection)


async def accounts(database: Database) -> tuple[str, str, bool]:
    """The key's thumbprint, the account's URL by it, and whether a change is requested."""
    async with database.connection() as connection:
        key = await acme_accounts.find_key(connection)
        rows = await connection.fetch("select distinct url from acme_accounts")
        is_requested, _ = await acme_accounts.find_rollover_error(connection)
    assert key is not None
    [row] = rows
    return key.thumbprint, row["url"], is_requested


async def until_rolled(database: Database, answering: Answering) -> None:
    async def is_rolled() -> bool:
        return not (await accounts(database))[2]

    await until(is_rolled)
    answering.thumbprint = (await accounts(database))[0]
    async with database.connection() as connection:
        thumbprints = await connection.fetch("select distinct thumbprint from acme_accounts")
    assert [each["thumbprint"] for each in thumbprints] == [answering.thumbprint], "the accounts go with the key"


async def test_another_key_is_used_with_the_same_account(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with (
        opened(pebble, database, keyring, answering) as issuer,
        opened(pebble, database, keyring, answering) as other_monitor,
    ):
        await Attempts().by(issuer)
        before, url, _ = await accounts(database)
        await request(database)
        await until_rolled(database, answering)
        await Attempts().by(issuer)
        await Attempts("other.customer.example").by(other_monitor)
    after, same, _ = await accounts(database)
    assert after != before
    assert same == url, "the CA keeps the account"


class Died(BaseException):
    """As kill -9: nothing that follows runs."""


@pytest.mark.parametrize(
    ("where", "step"), [(AcmeAccount, "roll"), (acme_accounts, "finish_rollover")], ids=["before the CA", "after it"]
)
async def test_a_monitor_that_dies_leaves_it_to_another(
    pebble: Pebble,
    database: Database,
    keyring: Keyring,
    answering: Answering,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    step: str,
) -> None:
    deaths = []

    async def die(*_: object) -> None:
        deaths.append(step)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(where, step, die)
        async with opened(pebble, database, keyring, answering) as issuer:
            await Attempts().by(issuer)
            old, url, _ = await accounts(database)
            await request(database)
            await until(lambda: deaths)
            with pytest.raises(IssuanceFailed, match="is being changed"):
                await Attempts().by(issuer)
    assert await accounts(database) == (old, url, True)
    async with opened(pebble, database, keyring, answering) as issuer:
        await until_rolled(database, answering)
        await Attempts().by(issuer)
    new, same, _ = await accounts(database)
    assert (new != old, same) == (True, url)


async def test_no_account_is_made_with_a_key_of_the_past(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor that starts while another changes the key has opened the key before, and registers after."""
    register, registered = AcmeAccount._register, []

    async def note(of: AcmeAccount, directory: object) -> str:
        registered.append(thumbprint(of._transport.key))
        return await register(of, directory)  # type: ignore[arg-type]

    async def open_before(_: object, __: object) -> object:
        return past

    monkeypatch.setattr(AcmeAccount, "_register", note)
    past = await open_key(database, keyring)
    async with database.transaction() as connection:
        await acme_accounts.request_rollover(connection)
        await acme_accounts.keep_next_key(connection, new_key(keyring))
        rollover = await acme_accounts.find_rollover(connection)
        assert rollover is not None
        assert rollover.key is not None
        await acme_accounts.finish_rollover(connection, rollover.key.thumbprint)
    with monkeypatch.context() as patch:
        patch.setattr(opening, "open_key", open_before)
        async with opened(pebble, database, keyring, answering) as issuer:
            await Attempts().by(issuer)
    assert registered == [rollover.key.thumbprint]


async def test_an_account_that_the_ca_has_lost_keeps_no_key_from_changing(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering) as issuer:
        await Attempts().by(issuer)
        before, url, _ = await accounts(database)
        async with database.connection() as connection:
            await connection.execute("update acme_accounts set url = url || '0'")
        await request(database)
        await until_rolled(database, answering)
    async with opened(pebble, database, keyring, answering) as issuer:
        await Attempts().by(issuer)
    after, another, _ = await accounts(database)
    assert after != before
    assert another not in (url, url + "0"), "an account with the new key"


async def test_an_account_made_while_the_key_changed_goes_with_the_key_of_before(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CA answers a registration so late that the key is another by then: the next order registers with that."""
    register = AcmeAccount._register
    late: list[str] = []

    async def answer_late(of: AcmeAccount, directory: object) -> str:
        url = await register(of, directory)  # type: ignore[arg-type]
        if not late:
            late.append(url)
            await request(database)
            async with database.transaction() as connection:
                next_key = new_key(keyring)
                await acme_accounts.keep_next_key(connection, next_key)
                await acme_accounts.finish_rollover(connection, next_key.thumbprint)
            await of.read_key()
            answering.thumbprint = next_key.thumbprint
        return url

    monkeypatch.setattr(AcmeAccount, "_register", answer_late)
    async with opened(pebble, database, keyring, answering) as issuer:

        async def is_issued() -> bool:
            try:
                await Attempts().by(issuer)
            except IssuanceFailed:
                return False
            return True

        await until(is_issued)
        async with database.connection() as connection:
            stored = await acme_accounts.find_identity(connection, pebble.directory)
    assert stored is not None
    assert stored.account_url != late[0]


async def test_orders_that_run_have_their_seconds_whichever_monitor_goes_on(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monitor that did not make the key waits as long, and one that comes later only for what is left."""
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    async with database.transaction() as connection:
        await acme_accounts.request_rollover(connection)
        await acme_accounts.keep_next_key(connection, new_key(keyring))
    await open_key(database, keyring)
    monkeypatch.setattr(asyncio, "sleep", note)
    await KeyRollover(database, keyring, [], orders_end_seconds=3600.0).roll_if_requested()
    [seconds] = waited
    assert 0.0 < seconds <= 3600.0


async def test_an_order_reads_no_key_that_was_read_just_now(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    async def note(_: KeyRollover) -> None:
        reads.append("again")

    async def rest(_: KeyRollover) -> None:
        pass

    monkeypatch.setattr(KeyRollover, "run", rest)
    async with opened(pebble, database, keyring, answering, trusted_key_seconds=3600.0) as issuer:
        await Attempts().by(issuer)
        monkeypatch.setattr(AcmeAccount, "read_key", note)
        await Attempts("other.customer.example").by(issuer)
    assert not reads


async def test_a_ca_that_is_away_is_waited_for_before_any_is_asked(
    pebble: Pebble, database: Database, keyring: Keyring, answering: Answering
) -> None:
    async with opened(pebble, database, keyring, answering) as issuer:
        await Attempts().by(issuer)
    [away] = free_ports(1)
    directories = pebble.directory, f"https://127.0.0.1:{away}/dir"

    async def reason() -> str:
        async with database.connection() as connection:
            return (await acme_accounts.find_rollover_error(connection))[1] or ""

    async with opened(pebble, database, keyring, answering, *directories) as issuer:
        await request(database)

        await until_equal(reason, "127.0.0.1 cannot be connected to")
        await Attempts().by(issuer)
        async with database.connection() as connection:
            assert await acme_accounts.cancel_rollover(connection)
    assert not (await accounts(database))[2]
