"""``/webhooks/…`` over HTTP: what a partner sees of events and deliveries, and how it has them sent again."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.bounds import Bounds
from common.accounts import Permission, Role
from common.db import deliveries, events, webhook_endpoints
from common.db.applications import update_application
from common.db.deliveries import ClaimedDelivery
from common.db.events import EventType, NewEvent
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.people import organisation, person

URL = "https://hooks.partner.example/frontage?token=1"
HIDDEN_URL = "https://hooks.partner.example/frontage?…"
ENTRY = {"at": "2026-03-01T12:00:00+00:00", "status": 500, "error": "answered 500"}
UNKNOWN = "evt_" + "0" * 34


@pytest.fixture
async def partner(service: Service) -> Partner:
    return await hooked_partner(service)


async def hooked_partner(service: Service) -> Partner:
    partner = await service.partner()
    await set_url(service, partner, URL)
    return partner


async def set_url(service: Service, partner: Partner, url: str | None) -> None:
    async with service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url=url)


async def record(
    service: Service, partner: Partner, event_type: EventType = "domain.record_missing", domain: str = "a.example"
) -> str:
    async with service.database.transaction() as connection:
        return await events.record(
            connection, NewEvent(partner.id, event_type, domain, "shop", {"user_id": "u", "connect_link": "https://x"})
        )


async def claim(service: Service) -> list[ClaimedDelivery]:
    async with service.database.transaction() as connection:
        return await deliveries.claim(connection, most=100, lease_seconds=10)


async def disable(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await webhook_endpoints.disable(connection, partner.id)


async def fetch(partner: Partner, path: str, **query: Any) -> Any:
    answer = await partner.call("GET", path, params=query)
    assert answer.status == 200, answer
    return answer.body


async def test_events_are_listed_newest_first_with_their_payload(service: Service, partner: Partner) -> None:
    first, second = await record(service, partner), await record(service, partner)
    body = await fetch(partner, "/webhooks/events")
    assert [event["id"] for event in body["events"]] == [second, first]
    assert body["next"] is None
    shown = body["events"][0]
    assert shown.keys() == {"id", "type", "created_at", "delivery", "payload"}
    assert shown["delivery"] == "pending"
    assert shown["payload"] == {
        "id": second,
        "type": "domain.record_missing",
        "application_id": partner.id,
        "occurred_at": shown["created_at"][:23] + "+00:00",
        "domain": "a.example",
        "subdomain": "shop",
        "sequence": 2,
        "user_id": "u",
        "connect_link": "https://x",
    }


async def test_links_in_payloads_are_shown_to_those_who_may_make_some(service: Service, partner: Partner) -> None:
    await record(service, partner)
    acme = await organisation(service, "Acme", partner)
    seen = {}
    cases: list[tuple[Role, Permission]] = [
        ("viewer", Permission.OWN),
        ("owner", Permission.VIEW),
        ("developer", Permission.CHANGE),
    ]
    for role, permission in cases:
        who = await person(service, f"{role}-{permission}@acme.test", acme, role, permission, application=partner)
        answer = await who.call("GET", "/webhooks/events")
        seen[role, permission] = answer.body["items"][0]["payload"]["connect_link"]
    assert list(seen.values()) == [None, None, "https://x"]


async def test_the_url_s_query_is_shown_to_those_who_may_change_it(service: Service, partner: Partner) -> None:
    acme = await organisation(service, "Acme", partner)
    cases: list[tuple[Role, Permission, str]] = [
        ("viewer", Permission.OWN, HIDDEN_URL),
        ("owner", Permission.VIEW, HIDDEN_URL),
        ("developer", Permission.CHANGE, URL),
    ]
    for role, permission, shown in cases:
        who = await person(service, f"{role}-{permission}@acme.test", acme, role, permission, application=partner)
        assert (await who.call("GET", "/application")).body["webhookUrl"] == shown
        assert (await who.call("GET", "/webhooks/endpoint")).body["url"] == shown
    assert (await fetch(partner, "/application"))["webhookUrl"] == URL


async def test_the_audit_log_shows_that_the_url_s_query_changed(service: Service, partner: Partner) -> None:
    for query in ("token=5ecret", "token=0ther"):
        changed = await partner.call("PUT", "/application", json={"webhookUrl": HIDDEN_URL[:-1] + query})
        assert changed.status == 200
    latest, *_ = (await fetch(partner, "/audit"))["items"]
    before, after = latest["before"]["webhook_url"], latest["after"]["webhook_url"]
    assert before != after
    for side in (before, after):
        assert re.fullmatch(re.escape(HIDDEN_URL) + r" \([0-9a-f]{6}\)", side)


async def test_pages_hold_every_event_once(service: Service, partner: Partner) -> None:
    recorded = [await record(service, partner) for _ in range(5)]
    for path, name, cursor in (("events", "id", "after"), ("deliveries", "event_id", "before")):
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 2}
        while True:
            body = await fetch(partner, f"/webhooks/{path}", **query)
            seen += [item[name] for item in body["items"]]
            if body["next"] is None:
                break
            query[cursor] = body["next"]
        assert seen == recorded[::-1]


async def test_events_are_filtered_by_type_and_domain(service: Service, partner: Partner) -> None:
    missing, secured = await record(service, partner), await record(service, partner, "domain.secure", "b.example")

    async def ids(**query: str) -> list[str]:
        return [event["id"] for event in (await fetch(partner, "/webhooks/events", **query))["events"]]

    assert await ids(type="domain.secure") == [secured]
    assert await ids(domain="A.Example.") == [missing]
    assert await ids(domain="a.example", type="domain.secure") == []


async def test_deliveries_show_their_attempts_and_are_filtered(service: Service, partner: Partner) -> None:
    event_id = await record(service, partner)
    [claimed] = await claim(service)
    async with service.database.transaction() as connection:
        await webhook_endpoints.note_failure(connection, partner.id, "answered 500")
        await deliveries.record_failed(connection, claimed, ENTRY, 300.0)
    await record(service, partner)
    [shown] = (await fetch(partner, "/webhooks/deliveries", event=event_id))["deliveries"]
    assert shown["attempts"] == [ENTRY]
    assert (shown["status"], shown["last_error"], shown["settled_at"]) == ("pending", "answered 500", None)
    assert shown["next_attempt_at"] > shown["created_at"]
    assert (await fetch(partner, "/webhooks/deliveries", status="failed"))["deliveries"] == []
    assert len((await fetch(partner, "/webhooks/deliveries", status="pending"))["deliveries"]) == 2


async def test_superseded_events_are_seen_and_sent_again_when_asked(service: Service, partner: Partner) -> None:
    missing = await record(service, partner)
    restored = await record(service, partner, "domain.record_restored")
    [shown] = (await fetch(partner, "/webhooks/deliveries", status="superseded"))["deliveries"]
    assert (shown["event_id"], shown["superseded_by"]) == (missing, restored)
    [claimed] = await claim(service)
    assert claimed.event_id == restored
    async with service.database.transaction() as connection:
        await deliveries.record_delivered(connection, claimed, {"at": "", "status": 204, "error": None})
    answer = await partner.call("POST", f"/webhooks/events/{missing}/replay")
    assert (answer.status, answer.message) == (202, "Event will be sent again.")
    assert [claimed.event_id for claimed in await claim(service)] == [missing]


async def test_event_from_before_the_webhook_was_set_can_be_sent(service: Service) -> None:
    partner = await service.partner()
    event_id = await record(service, partner)
    refused = await partner.call("POST", f"/webhooks/events/{event_id}/replay")
    assert (refused.status, refused.message) == (409, "No webhook URL is set.")
    await set_url(service, partner, URL)
    assert (await partner.call("POST", f"/webhooks/events/{event_id}/replay")).status == 202
    [claimed] = await claim(service)
    assert (claimed.event_id, claimed.url) == (event_id, URL)


async def test_test_event_is_recorded_and_sent(service: Service, partner: Partner) -> None:
    answer = await partner.call("POST", "/webhooks/test")
    assert answer.status == 202
    [claimed] = await claim(service)
    assert claimed.event_id == answer.body["id"]
    [event] = (await fetch(partner, "/webhooks/events", type="webhook.test"))["events"]
    assert event["payload"] == {
        "id": answer.body["id"],
        "type": "webhook.test",
        "application_id": partner.id,
        "occurred_at": event["created_at"][:23] + "+00:00",
    }


async def test_endpoint_tells_how_it_fares(service: Service, partner: Partner) -> None:
    nothing = {"failing_since": None, "disables_at": None, "disabled_at": None, "last_error": None}
    assert await fetch(partner, "/webhooks/endpoint") == {"url": URL, "enabled": True} | nothing
    await record(service, partner)
    async with service.database.transaction() as connection:
        await webhook_endpoints.note_failure(connection, partner.id, "answered 500")
        await webhook_endpoints.warn(connection, partner.id)
    body = await fetch(partner, "/webhooks/endpoint")
    assert body["last_error"] == "answered 500"
    assert body["failing_since"] < body["disables_at"]


async def test_disabled_endpoint_is_enabled_again(service: Service, partner: Partner) -> None:
    event_id = await record(service, partner)
    await disable(service, partner)
    assert (await fetch(partner, "/webhooks/endpoint"))["enabled"] is False
    assert await claim(service) == []
    for path in (f"/webhooks/events/{event_id}/replay", "/webhooks/test"):
        refused = await partner.call("POST", path)
        assert (refused.status, refused.message) == (409, "The webhook is disabled.")
    assert (await partner.call("POST", "/webhooks/endpoint/enable")).message == "Webhook enabled."
    assert (await fetch(partner, "/webhooks/endpoint"))["enabled"] is True
    assert [claimed.event_id for claimed in await claim(service)] == [event_id]


async def fail(service: Service, *event_ids: str, status: str = "failed") -> None:
    async with service.database.connection() as connection:
        await connection.execute(
            "update deliveries set status = $2, due_at = null, settled_at = now(), failures = 9"
            " where event_id = any($1)",
            event_ids,
            status,
        )


async def statuses(partner: Partner) -> dict[str, str]:
    return {each["event_id"]: each["status"] for each in (await fetch(partner, "/webhooks/deliveries"))["deliveries"]}


async def replay(partner: Partner, **body: Any) -> Any:
    answer = await partner.call("POST", "/webhooks/deliveries/replay", json=body)
    assert answer.status == 202, answer
    return answer.body["replayed"], answer.body["more"]


async def test_what_failed_in_a_range_is_sent_again_and_nothing_else(service: Service, partner: Partner) -> None:
    stranger = await hooked_partner(service)
    before, first, second, obsolete, after, foreign = [
        await record(service, each, domain=f"{number}.example")
        for number, each in enumerate((partner, partner, partner, partner, partner, stranger))
    ]
    await fail(service, before, first, second, after, foreign)
    await fail(service, obsolete, status="superseded")
    shown = {event["id"]: event["created_at"] for event in (await fetch(partner, "/webhooks/events"))["events"]}
    times = {"from": _moment(first), "to": _moment(after)}
    assert set(shown) == {before, first, second, obsolete, after}
    assert await replay(partner, **times) == (2, False)
    failed = dict.fromkeys((before, after), "failed") | dict.fromkeys((first, second), "pending")
    assert await statuses(partner) == failed | {obsolete: "superseded"}
    assert await statuses(stranger) == {foreign: "failed"}
    assert await replay(partner, **times) == (0, False)
    assert await replay(partner, **times, status="superseded") == (1, False)
    assert await replay(partner, **{"from": times["from"]}) == (1, False)
    sent_again = dict.fromkeys((first, second, obsolete, after), "pending")
    assert await statuses(partner) == sent_again | {before: "failed"}
    assert len(await claim(service)) == 1  # its endpoint is awake, and has yet to answer


def _moment(event_id: str) -> str:
    """When it happened, which its id begins with."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(event_id[4:18], 16))).isoformat()


@pytest.mark.parametrize("bounds", [Bounds(most_replayed=2)], ids=["few"])
async def test_a_replay_is_bounded_and_goes_on_with_the_same_call(service: Service, partner: Partner) -> None:
    ids = [await record(service, partner, domain=f"{number}.example") for number in range(3)]
    await fail(service, *ids)
    begin = {"from": "2020-01-01T00:00:00Z"}
    assert [await replay(partner, **begin) for _ in range(2)] == [(2, True), (1, False)]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-03-01T00:00:00"}, "from"),
        ({"from": "0001-01-01T00:00:00+23:59"}, "from"),
        ({"from": 0}, "from"),
        ({"from": "2026-03-01T00:00:00Z", "to": "later"}, "to"),
        ({"from": "2026-03-01T00:00:00Z", "status": "delivered"}, "status"),
    ],
)
async def test_a_replay_of_no_range_is_refused(partner: Partner, body: dict[str, Any], name: str) -> None:
    answer = await partner.call("POST", "/webhooks/deliveries/replay", json=body)
    assert (answer.status, answer.message) == (400, f"Invalid '{name}' parameter")


async def test_a_replay_to_a_disabled_endpoint_is_refused(service: Service, partner: Partner) -> None:
    await record(service, partner)
    await disable(service, partner)
    refused = await partner.call("POST", "/webhooks/deliveries/replay", json={"from": "2026-03-01T00:00:00Z"})
    assert (refused.status, refused.message) == (409, "The webhook is disabled.")


async def test_partners_see_and_touch_nothing_of_each_other(service: Service, partner: Partner) -> None:
    event_id, stranger = await record(service, partner), await hooked_partner(service)
    assert (await fetch(stranger, "/webhooks/events"))["events"] == []
    assert (await fetch(stranger, "/webhooks/deliveries", event=event_id))["deliveries"] == []
    assert (await stranger.call("POST", f"/webhooks/events/{event_id}/replay")).status == 404
    await disable(service, partner)
    await stranger.call("POST", "/webhooks/endpoint/enable")
    assert (await fetch(partner, "/webhooks/endpoint"))["enabled"] is False


@pytest.mark.parametrize("event_id", [UNKNOWN, "evt_1", "%00", "evt_" + "g" * 34])
async def test_replay_of_what_is_no_event_is_404(service: Service, partner: Partner, event_id: str) -> None:
    answer = await partner.call("POST", f"/webhooks/events/{event_id}/replay")
    assert (answer.status, answer.message) == (404, "Not Found")


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("events", "limit", "0"),
        ("events", "limit", "201"),
        ("events", "limit", "two"),
        ("events", "before", "yesterday"),
        ("events", "type", "domain.lost"),
        ("events", "domain", "no domain"),
        ("deliveries", "status", "sent"),
        ("deliveries", "event", "1"),
        ("deliveries", "before", "\0"),
    ],
)
async def test_bad_parameter_is_named(partner: Partner, path: str, name: str, value: str) -> None:
    answer = await partner.call("GET", f"/webhooks/{path}", params={name: value})
    assert (answer.status, answer.message) == (400, f"Invalid '{name}' parameter")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/webhooks/events"),
        ("GET", "/webhooks/deliveries"),
        ("GET", "/webhooks/endpoint"),
        ("POST", "/webhooks/test"),
        ("POST", f"/webhooks/events/{UNKNOWN}/replay"),
        ("POST", "/webhooks/deliveries/replay"),
        ("POST", "/webhooks/endpoint/enable"),
    ],
)
async def test_nobody_gets_in_without_a_token(service: Service, partner: Partner, method: str, path: str) -> None:
    answer = await partner.call(method, path, headers={"applicationId": partner.id})
    assert (answer.status, answer.message) == (401, "Unauthorized")
