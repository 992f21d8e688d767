"""A request's `X-Request-Id` in all that it causes: the change of the edges, the order, the event, its delivery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from api.rules import application_tokens as minting
from bench.lab.sink import WebhookSink
from common.db import batches
from common.db.application_secrets import webhook_secret_identity
from monitor.batches.processing import Processing
from monitor.claims import Runner
from tests.captured_logs import capture_logs
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.monitor import parts as orders
from tests.integration.replica import parts as replica
from tests.integration.webhooks import parts as webhooks
from tests.waiting import until

SHOP = "shop.customer.test"


async def receive_webhooks(service: Service, partner: Partner, sink: WebhookSink) -> None:
    sealed = service.keyring.seal(minting.mint_webhook_secret().encode(), webhook_secret_identity(partner.id))
    async with service.database.transaction() as connection:
        await connection.execute("update applications set webhook_url = $1, webhook_secret = $2", sink.url, sealed)


async def test_what_a_request_causes_carries_its_id(
    service: Service, partner: Partner, dsn: str, tmp_path: Path
) -> None:
    service.point(SHOP)
    edge = replica.make_replicator(dsn, tmp_path / "edge")
    issuing = orders.make_runner(service.database, orders.CountingIssuer(tmp_path), service.keyring)
    with capture_logs() as lines:
        async with (
            WebhookSink.serve() as sink,
            replica.running(edge),
            orders.running(issuing),
            webhooks.delivering(service.database, service.keyring),
        ):
            await receive_webhooks(service, partner, sink)
            await until(lambda: edge.version, "the first copy")
            powered = await partner.post(SHOP)
            id_ = powered.headers["X-Request-Id"]
            [delivered] = await sink.wait_for(1)
            assert delivered.headers["x-request-id"] == id_
            await until(lambda: [line for line in of(lines, id_) if line["event"] == "webhook attempted"])
            await until(lambda: "certificate shop.customer.test" in applied(lines, id_), "the edge's copy")
            [order] = await fetch(service, "select request_id, kind from orders")
            assert order == {"request_id": id_, "kind": "renewal"}
            assert await fetch(service, "select request_id from events") == [{"request_id": id_}]
            assert await fetch(service, "select request_id from deliveries") == [{"request_id": id_}]
            assert {"route power/shop.customer.test", "order shop.customer.test"} <= applied(lines, id_)
            assert "certificate is live" in {line["event"] for line in of(lines, id_)}
            caused = (await partner.call("GET", "/audit", params={"request_id": id_})).body["caused"]
            assert {"change", "order", "event", "delivery"} == {each["kind"] for each in caused}
            assert (await partner.call("GET", "/audit")).body["caused"] == []
            other = await service.partner()
            assert (await other.call("GET", "/audit", params={"request_id": id_})).body["caused"] == []

            await fetch(service, "update orders set due_at = now(), renew_at = now() returning 1")
            [_, renewed] = await sink.wait_for(2)
            assert "x-request-id" not in renewed.headers  # no request asked for a renewal
            [order] = await fetch(service, "select request_id from orders")
            assert order == {"request_id": None}

            [event, _] = await fetch(service, "select id from events order by id")
            replayed = await partner.call("POST", f"/webhooks/events/{event['id']}/replay")
            [*_, again] = await sink.wait_for(3)
            assert again.headers["x-request-id"] == replayed.headers["X-Request-Id"] != id_


async def test_what_a_batch_does_carries_the_id_of_the_request_that_made_it(service: Service, partner: Partner) -> None:
    record = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}
    body = {"domains": [{"domain": f"d{n}.test", "dnsRecords": [record]} for n in range(2)]}
    made = await partner.call("POST", "/monitor/domains/batch", json=body)
    assert made.status == 201, made
    working = Runner(
        service.database, batches, Processing(service.database).perform, concurrency=1, random=orders.HastyRandom()
    )
    query = {"request_id": made.headers["X-Request-Id"]}
    async with orders.running(working):

        async def is_done() -> bool:
            answer = await partner.call("GET", "/audit", params=query)
            return len(answer.body["entries"]) == 2

        await until(is_done, "the batch's entries")


def of(lines: list[dict[str, Any]], request_id: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("request_id") == request_id]


def applied(lines: list[dict[str, Any]], request_id: str) -> set[str]:
    """What the edge's log states as changed by the request."""
    return {key for line in of(lines, request_id) if line["logger"] == "edge.replica" for key in line["keys"]}


async def fetch(service: Service, statement: str) -> list[dict[str, Any]]:
    return await webhooks.fetch(service.database, statement)
