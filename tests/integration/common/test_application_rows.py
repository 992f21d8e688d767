"""Applications as rows, in a real Postgres."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from common.db.application_secrets import rotate_client_secret
from common.db.applications import (
    NewApplication,
    create_application,
    get_application,
    list_applications,
    update_application,
)
from common.db.pool import Database
from common.db.target_contests import CnameTargetTaken


def new(application_id: str, **fields: Any) -> NewApplication:
    given = {"cname_target": f"{application_id}.partner.test", "client_secret": b"s", "webhook_secret": b"w"} | fields
    return NewApplication(application_id, "A partner", **given)


async def create(database: Database, application: NewApplication) -> None:
    async with database.transaction() as connection:
        await create_application(connection, application)


async def test_an_application_is_read_as_it_was_made(database: Database) -> None:
    await create(database, new("one", root_path_access=("/static",), webhook_url="https://hooks.test"))
    await create(database, new("two"))

    async with database.connection() as connection:
        one = await get_application(connection, "one")
        assert one is not None
        assert (one.root_path_access, one.webhook_url, one.tier) == (("/static",), "https://hooks.test", "premium")
        assert (one.service_auth, one.previous_client_secret) == (None, None)
        assert [application.id for application in await list_applications(connection)] == ["one", "two"]
        assert await get_application(connection, "three") is None


async def test_only_what_is_given_changes(database: Database) -> None:
    await create(database, new("one"))

    async with database.transaction() as connection:
        await update_application(connection, "one", application_url="https://origin.test", service_auth=b"sealed")
        stored = await update_application(connection, "one", application_url=None)
        assert stored is not None
        one = stored.application
        assert (one.application_url, one.service_auth, one.name) == (None, b"sealed", "A partner")
        assert await update_application(connection, "one") == stored
        assert await update_application(connection, "nobody", name="x") is None
        with pytest.raises(TypeError, match="no id to set"):
            await update_application(connection, "one", id="two")  # type: ignore[call-arg]


async def test_a_cname_target_leads_to_one_application(database: Database) -> None:
    await create(database, new("one", cname_target="a.test", secure_cname_target="b.test"))
    await create(database, new("two"))

    for taken in (
        {"cname_target": "a.test"},
        {"cname_target": "b.test"},
        {"secure_cname_target": "a.test"},
        {"secure_cname_target": "b.test"},
    ):
        with pytest.raises(CnameTargetTaken):
            await create(database, new("three", **taken))
        with pytest.raises(CnameTargetTaken):
            async with database.transaction() as connection:
                await update_application(connection, "two", **taken)  # type: ignore[arg-type]

    async with database.transaction() as connection:
        assert await update_application(connection, "one", cname_target="b.test", secure_cname_target=None)


async def test_of_two_who_claim_one_target_at_once_one_gets_it(database: Database) -> None:
    claims = (new("one", cname_target="a.test"), new("two", secure_cname_target="a.test"))

    results = await asyncio.gather(*(create(database, claim) for claim in claims), return_exceptions=True)

    assert [type(result) for result in results if result is not None] == [CnameTargetTaken]


async def test_the_previous_secret_lives_as_long_as_it_was_given(database: Database) -> None:
    await create(database, new("one", client_secret=b"first"))

    async with database.transaction() as connection:
        assert await rotate_client_secret(connection, "one", b"second", timedelta(hours=1))
        one = await get_application(connection, "one")
        assert one is not None
        assert (one.client_secret, one.previous_client_secret) == (b"second", b"first")

        assert await rotate_client_secret(connection, "one", b"third", timedelta(0))
        one = await get_application(connection, "one")
        assert one is not None
        assert (one.client_secret, one.previous_client_secret) == (b"third", None)

        assert not await rotate_client_secret(connection, "nobody", b"x", timedelta(0))
