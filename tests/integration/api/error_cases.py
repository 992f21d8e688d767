"""What a service is like before each request that the handbook shows as the example of a code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from bench.lab.zone import Behaviour
from common.accounts import Permission, Role
from common.db import application_removal, domains, flow_ends, grants, policies, users
from common.domain_settings import DomainSettings
from tests.certificates import pem, pem_of
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.people import Person, key_of, organisation, person
from tests.integration.api.secured import go_live
from tests.reference import ERROR_EXAMPLES

SHOP = "shop.customer.test"
ORIGIN = "https://origin.example.com/shop"
POWER = {"domain": SHOP, "applicationUrl": ORIGIN}
RECORD = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "applicationUrl": ORIGIN}
CONFIG: dict[str, Any] = {"power": True, "dnsRecords": [RECORD]}


@dataclass(frozen=True, slots=True)
class Ready:
    """`ids`: what stands in the path and the body for ``{name}``; `headers`: those of the request, if not a token's."""

    ids: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] | None = None


ID = "4f6c1a9e2b7d0385"
"""Stands for every id, which another run has others of."""
_IDS = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-f]{16,}|[a-z2-7]{32})(?![0-9a-zA-Z])")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_LONG = ("flow", "plan", "changed")

Setup = Callable[[Service, Partner], Awaitable[Ready | None]]


async def nothing(_service: Service, _partner: Partner) -> None:
    """What a new application has."""


async def points(service: Service, _partner: Partner) -> None:
    service.point(SHOP)


async def powered(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await domains.power(connection, SHOP, partner.id, DomainSettings(ORIGIN))


async def enrolled(service: Service, partner: Partner) -> None:
    """By a call, so that its DNS leads here."""
    service.point(SHOP)
    assert (await partner.post(SHOP, ORIGIN)).status == 200


async def powered_by_operator(service: Service, partner: Partner) -> Ready:
    await powered(service, partner)
    return await by_operator(service, partner)


async def anothers(service: Service, partner: Partner) -> None:
    """Another application has the name, and its DNS leads to that one."""
    await powered(service, await service.partner())
    service.point(SHOP, 2)


async def anothers_by_its_dns(service: Service, partner: Partner) -> None:
    """The name leads to the other application, and a TXT record proves that it is this one's."""
    await anothers(service, partner)
    service.zone.add(f"_frontage.{SHOP}", "TXT", f"application={partner.id}")


async def blocked(service: Service, _partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await policies.put(connection, "domain", SHOP, policies.FORBIDDEN, "Phishing was reported")


async def suspended(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await policies.put(connection, "application", partner.id, policies.FORBIDDEN, "Unpaid")


async def lacks_step_one(service: Service, _partner: Partner) -> None:
    service.zone.remove("target-1.partner.test")
    service.zone.add("target-1.partner.test", "A", "192.0.2.77")
    service.point(SHOP)


async def too_often(service: Service, partner: Partner) -> None:
    service.point(SHOP)
    for _ in range(6):
        assert (await partner.post(SHOP, ORIGIN)).status == 200
        assert (await partner.delete(SHOP)).status == 200


async def secured(service: Service, partner: Partner) -> None:
    """A certificate of Secure is on its way."""
    service.point(SHOP)
    body = {"domain": SHOP, "redirectTo": "https://www.customer.test"}
    assert (await partner.call("POST", "/ssl", json=body)).status == 200


async def gone_elsewhere(service: Service, partner: Partner) -> None:
    await secured(service, partner)
    await go_live(service, SHOP, partner.id)
    service.zone.replace(SHOP, "CNAME", "elsewhere.test")
    await execute(service, "update domains set departed_at = now()")


async def database_fails(service: Service, _partner: Partner) -> None:
    await execute(service, "alter table domains rename to gone")


def misbehaves(behaviour: Behaviour) -> Setup:
    async def misbehave(service: Service, _partner: Partner) -> None:
        service.zone.misbehave(SHOP, behaviour)

    return misbehave


def record(kind: str, value: str) -> Setup:
    async def add(service: Service, _partner: Partner) -> None:
        service.zone.add(SHOP, kind, value)

    return add


def own(leaf: Any, *more: Any, key: Any, password: bytes | None = None) -> dict[str, Any]:
    """Return the body that keeps a certificate of one's own."""
    return {"certificate": pem(leaf, *more), "privateKey": None if key is None else pem_of(key, password)}


async def execute(service: Service, statement: str, *arguments: Any) -> None:
    async with service.database.transaction() as connection:
        await connection.execute(statement, *arguments)


def check_example(code: str, method: str, path: str, body: Any, answer: Answer, ids: Mapping[str, str]) -> None:
    """Compare the request and its answer with the example that the handbook shows of the code."""
    assert answer.body.get("code") == code, answer
    shown = {"method": method, "path": path, "body": body, "status": answer.status, "answer": answer.body}
    if isinstance(body, dict) and "privateKey" in body:
        shown["body"] = {"certificate": "…", "privateKey": "…"}
    shown["answer"] = {key: "…" if key in _LONG else value for key, value in answer.body.items()} | {"request_id": ID}
    text = json.dumps(shown, ensure_ascii=False)
    for value in ids.values():
        text = text.replace(value, ID)
    shown = json.loads(_TIME.sub("2026-11-25 12:00 UTC", _IDS.sub(ID, text)))
    kept = json.loads(ERROR_EXAMPLES.read_text("utf-8"))
    if "WRITE_ERROR_EXAMPLES" in os.environ:
        kept = dict(sorted((kept | {code: shown}).items()))
        ERROR_EXAMPLES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert kept[code] == shown, "WRITE_ERROR_EXAMPLES=1 writes it anew, python -m tests.reference the page"


# Tokens and keys -------------------------------------------------------------------------------------------------


def by_token(lifetime: timedelta = timedelta(minutes=5), **claims: Any) -> Setup:
    async def make(_service: Service, partner: Partner) -> Ready:
        return with_token(partner, partner.token(lifetime=lifetime, **claims))

    return make


def with_token(partner: Partner, token: str, **ids: str) -> Ready:
    return Ready(ids, {"applicationId": partner.id, "Authorization": f"Bearer {token}"})


async def without_token(_service: Service, _partner: Partner) -> Ready:
    return Ready(headers={})


async def by_anothers_token(_service: Service, partner: Partner) -> Ready:
    return with_token(partner, "another's")


async def by_token_for_another_application(service: Service, partner: Partner) -> Ready:
    ready = with_token(partner, partner.token())
    return Ready(headers={**(ready.headers or {}), "applicationId": (await service.partner()).id})


def headers_of(who: Person, *, names_application: bool = True) -> dict[str, str]:
    named = {"applicationId": who.application} if who.application and names_application else {}
    return {"Authorization": f"Bearer {who.key}", **named}


def by_key(role: Role = "owner", permission: Permission = Permission.OWN, *, names_application: bool = True) -> Setup:
    """By a key of a user of the organisation that has the application."""

    async def make(service: Service, partner: Partner) -> Ready:
        acme = await organisation(service, "Acme", partner)
        ada = await person(service, "ada@acme.example", acme, role, permission, application=partner)
        ids = {"organisation": acme.id, "user": ada.user.id}
        return Ready(ids, headers_of(ada, names_application=names_application))

    return make


async def by_operator(service: Service, partner: Partner) -> Ready:
    await organisation(service, "Acme", partner)
    return Ready(headers=headers_of(await person(service, "ops@frontage.example", application=partner)))


async def by_key_of_application(service: Service, partner: Partner) -> Ready:
    acme = await organisation(service, "Acme", partner)
    ada = await person(service, "ada@acme.example", acme, "owner", application=partner)
    return Ready(headers=headers_of(await key_of(service, ada.user, Permission.OWN, only=partner.id)))


async def by_unknown_key(service: Service, partner: Partner) -> Ready:
    acme = await organisation(service, "Acme", partner)
    ada = await person(service, "ada@acme.example", acme, "owner", application=partner)
    await execute(service, "delete from user_keys where id = $1", ada.key_id)
    return Ready(headers=headers_of(ada))


async def by_expired_key(service: Service, partner: Partner) -> Ready:
    ready = await by_key()(service, partner)
    await execute(service, "update user_keys set expires_at = now()")
    assert ready is not None
    return ready


async def deleting(service: Service, partner: Partner) -> Ready:
    ready = await by_key()(service, partner)
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)
    assert ready is not None
    return ready


async def beside_another_organisation(service: Service, partner: Partner) -> Ready:
    """Bob is a user of another organisation."""
    ready = await by_key()(service, partner)
    await person(service, "bob@other.example", await organisation(service, "Other"))
    assert ready is not None
    return ready


async def with_a_member_of_others(service: Service, partner: Partner) -> Ready:
    """Bob is a user of this organisation and of another."""
    ready = await beside_another_organisation(service, partner)
    async with service.database.transaction() as connection:
        bob = await users.find_user(connection, "bob@other.example")
        assert bob is not None
        await grants.give_role(connection, bob, ready.ids["organisation"], "viewer")
    return ready


async def with_most_members(service: Service, partner: Partner) -> Ready:
    ready = await by_key()(service, partner)
    assert ready is not None
    others = f"from generate_series(2, {users.MOST_MEMBERS}) n"
    await execute(service, f"insert into users (id, email) select 'u' || n, n || '@acme.example' {others}")
    members = f"insert into memberships (user_id, organisation_id, role) select 'u' || n, $1, 'viewer' {others}"
    await execute(service, members, ready.ids["organisation"])
    return ready


async def beside_another_application(service: Service, _partner: Partner) -> None:
    await service.partner()


async def webhook_disabled(service: Service, partner: Partner) -> None:
    await execute(service, "update applications set webhook_url = 'https://hooks.acme.example'")
    await execute(
        service,
        "insert into webhook_endpoints (application_id, disabled_at) values ($1, now())"
        " on conflict (application_id) do update set disabled_at = now()",
        partner.id,
    )


def watched(body: Any) -> Setup:
    async def watch(_service: Service, partner: Partner) -> None:
        assert (await partner.call("POST", "/monitor/domains", json=body)).status == 201

    return watch


async def batch_of_another(service: Service, _partner: Partner) -> Ready:
    other = await service.partner()
    sent = await other.call("DELETE", "/monitor/domains/batch", json={"domains": [{"domain": "customer.test"}]})
    return Ready({"batch": sent.body["request_id"]})


def sent_before(body: Any, *, is_running: bool = False) -> Setup:
    """A request under the key was sent already, with this body."""

    async def send(service: Service, partner: Partner) -> Ready:
        headers = partner.headers | {"Idempotency-Key": "order-4711"}
        await partner.call("POST", "/monitor/domains", json=body, headers=headers)
        if is_running:
            await execute(service, "update idempotent_requests set status = null, body = null")
        return Ready(headers=headers)

    return send


# The connect modal -----------------------------------------------------------------------------------------------


async def begun(partner: Partner, **fields: Any) -> str:
    answer = await partner.call("POST", "/connect/flows", json=CONFIG | {"domain": SHOP} | fields)
    assert answer.status == 201, answer.body
    flow: str = answer.body["id"]
    return flow


async def registered(partner: Partner, config: Mapping[str, Any] = CONFIG) -> str:
    answer = await partner.call("POST", "/connect/configurations", json={"config": config})
    assert answer.status == 201, answer.body
    configuration: str = answer.body["id"]
    return configuration


async def shared(partner: Partner, **config: Any) -> tuple[str, str]:
    """Make a sharing link and open it: its id, and the token of its page."""
    made = await partner.call("POST", "/sharing/connect", json={"config": CONFIG | config})
    assert made.status == 201, made.body
    opened = await partner.call("GET", f"/share/{made.body['id']}", headers={"Accept": "application/json"})
    return made.body["id"], opened.body["token"]


def flow_in(state: str) -> Setup:
    async def make(service: Service, partner: Partner) -> Ready:
        flow = await begun(partner)
        await execute(service, "update connect_flows set state = $1, due_at = null", state)
        return Ready({"flow": flow})

    return make


async def not_subscribed(service: Service, _partner: Partner) -> None:
    await execute(service, "update applications set connect = false")


async def by_token_of_a_configuration(_service: Service, partner: Partner) -> Ready:
    first, other = await registered(partner), await registered(partner, CONFIG | {"monitor": True})
    return with_token(partner, partner.token(scope="connect", configurationId=first), configuration=other)


async def by_browsers_token(_service: Service, partner: Partner) -> Ready:
    return with_token(partner, partner.token(scope="connect"), configuration=await registered(partner))


async def by_token_of_another_link(_service: Service, partner: Partner) -> Ready:
    _, token = await shared(partner)
    other, _ = await shared(partner, monitor=True)
    return with_token(partner, token, share=other)


async def by_token_of_a_revoked_link(_service: Service, partner: Partner) -> Ready:
    link, token = await shared(partner)
    assert (await partner.call("DELETE", f"/sharing/connect/{link}")).status == 200
    return with_token(partner, token)


async def with_most_configurations(service: Service, partner: Partner) -> None:
    rows = (
        "insert into connect_configurations (id, application_id, digest, config)"
        " select 'cfg_' || n, $1, n::text::bytea, '{}' from generate_series(1, 20000) n"
    )
    await execute(service, rows, partner.id)


def ended(code: str) -> Setup:
    """The flow goes no further, as what it came from was taken back."""

    async def end(service: Service, partner: Partner) -> Ready:
        flow = await begun(partner)
        if code == flow_ends.SECRET_ENDED:
            await execute(service, "update connect_flows set secret_generation = -1")
        else:
            await execute(service, "update connect_flows set ended = $1", code)
        return with_token(partner, partner.token(scope="connect"), flow=flow)

    return end


async def basic_tier(service: Service, partner: Partner) -> None:
    await execute(service, "update applications set tier = 'basic'")


async def unproven(service: Service, _partner: Partner) -> None:
    service.zone.add(SHOP, "A", SERVER)
