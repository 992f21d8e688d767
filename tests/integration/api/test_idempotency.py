"""``Idempotency-Key``: what was done is done once, and answered alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from api.idempotency import Ending, Settlements
from api.operations import OPERATIONS
from common.db import events
from common.db import idempotent_requests as kept
from common.db.applications import update_application
from common.db.events import NewEvent
from common.db.idempotent_requests import KeptAnswer, KeyConflict, KeyHold
from common.db.pool import Database
from common.db.session import Connection
from common.errors import DatabaseUnavailable
from tests.conftest import execute_at
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.people import person
from tests.integration.api.secured import go_live
from tests.waiting import until

BODY = {"domain": "customer.example", "dnsRecords": [{"type": "TXT", "host": "@", "value": "a=1", "ttl": 300}]}


async def post(partner: Partner, key: str, path: str = "/monitor/domains/batch", body: Any = None) -> Answer:
    headers = partner.headers | {"Idempotency-Key": key}
    return await partner.call("POST", path, json=body or {"domains": [BODY]}, headers=headers)


async def count(service: Service) -> int:
    async with service.database.connection() as connection:
        return int(await connection.fetchval("select count(*) from batches"))


async def test_a_request_sent_again_gets_the_same_answer_and_does_nothing(service: Service, partner: Partner) -> None:
    first, second = await post(partner, "one"), await post(partner, "one")
    assert (first.status, first.body) == (second.status, second.body)
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (await post(partner, "two")).body != first.body
    assert await count(service) == 2


async def test_a_key_belongs_to_an_application_a_call_and_a_scope(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    await post(partner, "one")
    assert (await post(other, "one")).headers.get("Idempotent-Replayed") is None
    assert (await post(partner, "one", "/monitor/domains", BODY)).message == "Domain successfully added"


async def test_the_query_belongs_to_the_call(partner: Partner) -> None:
    for subdomain in ("shop", "www"):
        await post(partner, subdomain, "/monitor/domains", BODY | {"subdomain": subdomain})
    added = {"dnsRecords": [{"type": "TXT", "host": "@", "value": "b=2", "ttl": 300}]}
    for subdomain in ("shop", "www"):
        path = f"/monitor/domains/customer.example/records?subdomain={subdomain}"
        answer = await post(partner, "one", path, added)
        assert "Idempotent-Replayed" not in answer.headers
        assert (await post(partner, "one", path, added)).headers["Idempotent-Replayed"] == "true"
        assert len((await partner.call("GET", path)).body) == 2


async def test_requests_at_the_same_time_do_it_once(service: Service, partner: Partner) -> None:
    answers = await asyncio.gather(*(post(partner, "one") for _ in range(10)))
    assert await count(service) == 1
    for answer in answers:
        assert answer.status in (201, 409)
        if answer.status == 409:
            assert (answer.body["code"], answer.headers["Retry-After"]) == ("idempotency_key_running", "1")


async def test_a_key_used_for_another_body_is_refused_and_does_nothing(service: Service, partner: Partner) -> None:
    await post(partner, "one")
    answer = await post(partner, "one", body={"domains": [BODY | {"domain": "another.example"}]})
    assert (answer.status, answer.body["code"]) == (409, "idempotency_key_reused")
    assert await count(service) == 1


async def test_every_call_that_takes_a_key_documents_how_it_refuses_one(service: Service, partner: Partner) -> None:
    """`Partner.call` compares each answer with the reference."""
    operator = await person(service, "ops@x.test", application=partner)
    calls = [each for each in OPERATIONS if each.method == "POST" and not each.is_open]
    for operation in calls:
        path = (
            operation.path.replace("{id}", "x")
            .replace("{domain_name}", "customer.example")
            .replace("{domain}", "customer.example")
        )
        body = dict(operation.example or {})
        if operation.by_key_alone:
            answer = await operator.call("POST", path, json=body, headers={"Idempotency-Key": "two words"})
        else:
            answer = await post(partner, "two words", path, body)
        assert (answer.status, answer.message) in (
            (400, "Invalid 'Idempotency-Key' parameter"),
            (502, "Invalid 'Idempotency-Key' parameter"),
        ), operation.id


async def test_a_refused_request_may_be_sent_again(partner: Partner) -> None:
    assert (await post(partner, "one", body={"domains": []})).status == 400
    assert (await post(partner, "one")).status == 201


async def test_what_is_no_key_is_refused(partner: Partner) -> None:
    for key in ("", "a b", "x" * 256):
        assert (await post(partner, key)).status == 400
        assert (await post(partner, key, "/power")).status == 502


async def test_a_request_whose_process_died_runs_again_later(service: Service, partner: Partner) -> None:
    await post(partner, "one")
    async with service.database.transaction() as connection:
        await connection.execute("update idempotent_requests set status = null, body = null")
    assert (await post(partner, "one")).status == 409
    async with service.database.transaction() as connection:
        await connection.execute("update idempotent_requests set started_at = now() - interval '3 minutes'")
    assert (await post(partner, "one")).status == 201


async def test_what_an_attempt_did_whose_answer_was_lost_is_not_refused_to_the_next(
    service: Service, partner: Partner
) -> None:
    """As after a failover: the database committed the first attempt, and nobody knows that it ended."""
    service.point("shop.customer.test")
    body = {"domain": "shop.customer.test", "applicationUrl": "https://origin.example.com/a"}
    first = await post(partner, "one", "/power", body)
    await lose_answers(service)
    other = await post(partner, "two", "/power", body)
    assert (other.status, other.body["code"]) == (502, "enrolled"), "it is another request"
    for _ in range(2):  # the second one gets the answer that was kept
        again = await post(partner, "one", "/power", body)
        assert (again.status, again.body) == (200, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len((await partner.get()).body["items"]) == 1
    async with service.database.connection() as connection:
        assert await connection.fetchval("select count(*) from audit where action = 'power.enrol'") == 1


async def lose_answers(service: Service) -> None:
    """As when processes died between the commit of what they did and that of their answers."""
    async with service.database.transaction() as connection:
        await connection.execute(
            "update idempotent_requests set status = null, body = null, started_at = now() - interval '3 minutes'"
        )


FLOW = {
    "config": {
        "applicationName": "Acme",
        "prefilledDomain": "shop.customer.test",
        "dnsRecords": [{"type": "TXT", "host": "@", "value": "acme=1", "ttl": 300}],
    }
}
MADE_ONCE: dict[str, tuple[str, str, Any]] = {
    "a flow": ("connect_flows", "/connect/flows", FLOW["config"]),
    "a batch": ("batches", "/monitor/domains/batch", {"domains": [BODY]}),
    "a test event": ("events", "/webhooks/test", {}),
    "a replay": ("audit where action = 'webhook.replay'", "/webhooks/events/{event}/replay", {}),
    "a replay of many": (
        "audit where action = 'webhook.replay_failed'",
        "/webhooks/deliveries/replay",
        {"from": "2026-01-01T00:00:00Z", "status": "failed"},
    ),
}


@pytest.mark.parametrize("case", MADE_ONCE)
async def test_what_is_made_anew_each_time_is_made_once_where_the_first_answer_was_lost(
    service: Service, case: str
) -> None:
    table, path, body = MADE_ONCE[case]
    partner = await service.partner()
    async with service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.acme.example/in")
        event = await events.record(connection, NewEvent(partner.id, "webhook.test", None, None, {}))

    async def count_rows() -> int:
        async with service.database.connection() as connection:
            return int(await connection.fetchval(f"select count(*) from {table}"))

    path = path.format(event=event)
    first = await post(partner, "one", path, body)
    assert first.status in (200, 201, 202), first.body
    made = await count_rows()
    await lose_answers(service)
    again = await post(partner, "one", path, body)
    assert (again.status, again.body, "Idempotent-Replayed" in again.headers) == (first.status, first.body, False)
    assert await count_rows() == made
    assert (await post(partner, "one", path, body)).headers["Idempotent-Replayed"] == "true"
    other = await post(partner, "two", path, body)
    assert other.status == first.status
    assert await count_rows() > made, "it is another request"


async def test_a_certificate_is_renewed_once_where_the_first_answer_was_lost(
    service: Service, partner: Partner
) -> None:
    service.point("shop.customer.test")
    assert (await partner.post("shop.customer.test")).status == 200
    path = "/domains/shop.customer.test/renew"

    async def renewals_ordered() -> int:
        """And end the renewal, as a monitor does."""
        await go_live(service, "shop.customer.test", partner.id)
        async with service.database.transaction() as connection:
            ended = await connection.fetch("update orders set due_at = null where due_at is not null returning domain")
        return len(ended)

    await renewals_ordered()
    first = await post(partner, "one", path, {})
    assert (first.status, await renewals_ordered()) == (202, 1)
    await lose_answers(service)
    again = await post(partner, "one", path, {})
    assert (again.status, again.body, await renewals_ordered()) == (202, first.body, 0)
    assert ((await post(partner, "two", path, {})).status, await renewals_ordered()) == (202, 1)


async def test_applications_and_organisations_are_made_once_where_the_first_answer_was_lost(service: Service) -> None:
    operator = await person(service, "ops@x.test")
    for path, body in (
        ("/organisations", {"name": "New"}),
        ("/applications", {"name": "New", "cnameTarget": "power.new.test"}),
    ):
        headers = {"Idempotency-Key": "one"}
        first = await operator.call("POST", path, json=body, headers=headers)
        assert first.status == 201, first.body
        await lose_answers(service)
        again = await operator.call("POST", path, json=body, headers=headers)
        assert (again.status, again.body) == (201, first.body)
        other = await operator.call("POST", path, json=body, headers={"Idempotency-Key": "two"})
        assert other.status == 409, "its name or target is taken"


async def test_another_body_under_the_key_of_a_failed_request_is_another_request(
    service: Service, partner: Partner
) -> None:
    service.point("shop.customer.test")
    body = {"domain": "shop.customer.test", "applicationUrl": "https://origin.example.com/a"}
    assert (await post(partner, "one", "/power", body)).status == 200
    async with service.database.transaction() as connection:
        await connection.execute(
            "update idempotent_requests set status = null, body = null, started_at = now() - interval '3 minutes'"
        )
    changed = await post(partner, "one", "/power", body | {"applicationUrl": "https://origin.example.com/b"})
    assert (changed.status, changed.body["code"]) == (502, "enrolled")


async def test_a_run_whose_key_another_one_has_meanwhile_writes_nothing_under_it(
    service: Service, partner: Partner
) -> None:
    request = (partner.id, b"key", b"digest of the body", "req_1")
    async with service.database.transaction() as connection:
        slow = await kept.begin(connection, *request)
        assert isinstance(slow, KeyHold)
        await connection.execute("update idempotent_requests set started_at = now() - interval '3 minutes'")
    async with service.database.transaction() as connection:
        second = await kept.begin(connection, *request)
        assert isinstance(second, KeyHold)
        await kept.forget(connection, slow)
        await kept.finish(connection, slow, KeptAnswer(201, b"slow"))
        assert await kept.begin(connection, *request) is KeyConflict.RUNNING
        await kept.finish(connection, second, KeptAnswer(201, b"second"))
        await kept.finish(connection, slow, KeptAnswer(201, b"slow"))
        assert await kept.begin(connection, *request) == KeptAnswer(201, b"second")


@pytest.mark.parametrize("ending", [*Ending, KeptAnswer(201, b"done")])
async def test_a_request_whose_database_went_away_is_settled_once_it_is_back(
    service: Service, server_dsn: str, dsn: str, ending: KeptAnswer | Ending
) -> None:
    """Else its client would be refused for two minutes after a failover, as if the request still ran."""
    request = ((await service.partner()).id, b"key", b"digest of the body", "req_1")

    async def begin() -> object:
        async with service.database.transaction() as connection:
            return await kept.begin(connection, *request)

    hold = await begin()
    assert isinstance(hold, KeyHold)
    settlements, name = Settlements(service.database), dsn.partition("?")[0].rpartition("/")[2]
    await execute_at(server_dsn, f'alter database "{name}" with allow_connections false')
    await execute_at(server_dsn, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
    await settlements.settle(hold, ending)
    await execute_at(server_dsn, f'alter database "{name}" with allow_connections true')

    async def is_settled() -> bool:
        begun = await begin()
        return begun == ending if isinstance(ending, KeptAnswer) else isinstance(begun, KeyHold)

    await until(is_settled)
    await settlements.close()


class UnansweredCommit:
    """A database that goes away behind the first commit, before it has answered it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_away = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self._database.transaction() as connection:
            yield connection
        if not self._is_away:
            self._is_away = True
            raise DatabaseUnavailable("connection lost")


async def test_a_hold_whose_commit_was_not_answered_is_freed(service: Service) -> None:
    request = ((await service.partner()).id, b"key", b"digest of the body", "req_1")
    settlements = Settlements(cast("Database", UnansweredCommit(service.database)))
    with pytest.raises(DatabaseUnavailable):
        await settlements.begin(*request)

    async def is_free() -> bool:
        return isinstance(await settlements.begin(*request), KeyHold)

    await until(is_free)
    await settlements.close()
