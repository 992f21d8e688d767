"""API keys of users: what each role and permission opens, and what ends them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from api.errors import Refused
from api.operations import OPERATIONS, Operation
from api.services import credentials
from api.services.removals import Removals
from common.accounts import Permission
from common.db import application_removal, policies, user_keys, users
from common.db.applications import MOST_OF_ORGANISATION, get_application, update_application
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.people import Person, key_of, organisation, person
from tests.waiting import until

SHOP = "shop.customer.test"


def path_of(operation: Operation[Any], **names: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "x.customer.test"), operation.path)


async def test_a_key_opens_the_applications_that_its_user_sees(service: Service) -> None:
    ours, theirs = await service.partner(), await service.partner()
    acme = await organisation(service, "Acme", ours)
    await organisation(service, "Theirs", theirs)
    ada = await person(service, "ada@acme.example", acme, "developer")
    assert (await ada.call("GET", "/application", application=ours.id)).body["name"] == "A partner"
    service.point(SHOP)
    assert (await ada.call("POST", "/power", application=ours.id, json={"domain": SHOP})).status == 502
    url = "https://origin.example.com"
    powered = await ada.call("POST", "/power", application=ours.id, json={"domain": SHOP, "applicationUrl": url})
    assert powered.status == 200, powered
    assert (await ada.call("GET", "/application", application=theirs.id)).status == 404
    assert (await ada.call("GET", "/application", application="no such")).status == 404
    assert (await ada.call("GET", "/application")).body["code"] == "application"
    (entry, *_) = (await ada.call("GET", "/audit", application=ours.id)).body["entries"]
    assert (entry["way"], entry["actor"]) == ("api", f"ada@acme.example ({ada.key_id})")
    assert entry["request_id"] == powered.headers["X-Request-Id"]
    assert powered.headers["RateLimit-Policy"].startswith('"user"')


async def test_no_call_opens_another_organisations_application(service: Service) -> None:
    theirs = await service.partner()
    await organisation(service, "Theirs", theirs)
    eve = await person(service, "eve@acme.example", await organisation(service), "owner", application=theirs)
    for operation in OPERATIONS:
        if operation.has_application and not operation.is_open:
            answer = await eve.call(operation.method, path_of(operation), json=operation.example or {})
            assert answer.status == 404, (operation.id, answer)


async def test_a_viewer_changes_nothing_whatever_the_key_permits(service: Service, partner: Partner) -> None:
    acme = await organisation(service, "Acme", partner)
    for email, role, permission in (
        ("viewer@acme.example", "viewer", Permission.OWN),
        ("owner@acme.example", "owner", Permission.VIEW),
    ):
        asks = await person(service, email, acme, role, permission, application=partner)  # type: ignore[arg-type]
        for operation in OPERATIONS:
            if operation.is_open or operation.needed is Permission.VIEW:
                continue
            path = path_of(operation, organisation=acme.id)
            answer = await asks.call(operation.method, path, json=operation.example or {})
            wanted = (403,) if operation.has_application else (403, 404)
            assert answer.status in wanted, (operation.id, answer)
        assert (await asks.call("GET", "/application")).status == 200
        assert (await asks.call("GET", "/organisations")).body["items"][0]["role"] == role
        assert (await asks.call("GET", "/operations")).status == 404


async def test_a_token_of_an_application_opens_nothing_of_users(partner: Partner) -> None:
    for operation in OPERATIONS:
        if operation.by_key_alone:
            answer = await partner.call(operation.method, path_of(operation), json=operation.example or {})
            assert (answer.status, answer.body["code"]) == (403, "key_needed"), operation.id


@pytest.mark.parametrize("is_operator", [False, True])
async def test_a_key_of_one_application_opens_what_its_tokens_open_and_nothing_else(
    service: Service, is_operator: bool
) -> None:
    ours, sibling = await service.partner(), await service.partner()
    acme = await organisation(service, "Acme", ours, sibling)
    ada = await person(service, "ada@acme.example", None if is_operator else acme, "owner")
    key = await key_of(service, ada.user, Permission.OWN, only=ours.id)
    for operation in OPERATIONS:
        if operation.is_open:
            continue
        path, body = path_of(operation, organisation=acme.id), operation.example or {}
        beside = await key.call(operation.method, path, application=sibling.id, json=body)
        if operation.by_key_alone:
            assert (beside.status, beside.body["code"]) == (403, "key_of_application"), operation.id
            mine = await key.call(operation.method, path, application=ours.id, json=body)
            assert (mine.status, mine.body["code"]) == (403, "key_of_application"), operation.id
        else:
            assert beside.status == 404, (operation.id, beside)
    assert (await key.call("GET", "/application", application=ours.id)).status == 200
    (listed,) = [each for each in (await ada.call("GET", "/account/keys")).body["items"] if each["id"] == key.key_id]
    assert listed["applicationId"] == ours.id


async def test_a_key_of_one_application_ends_with_it_and_with_the_users_role(service: Service) -> None:
    ours, theirs = await service.partner(), await service.partner()
    acme, other = await organisation(service, "Acme", ours), await organisation(service, "Other", theirs)
    ada = await person(service, "ada@acme.example", acme, "owner")
    key = await key_of(service, ada.user, Permission.VIEW, only=ours.id, application=ours)
    assert (await key.call("PUT", "/application", json={"name": "New"})).status == 403
    async with service.database.transaction() as connection:
        await update_application(connection, ours.id, organisation_id=other.id)
    assert (await key.call("GET", "/application")).status == 404
    async with service.database.transaction() as connection:
        await update_application(connection, ours.id, organisation_id=acme.id)
        await application_removal.begin(connection, ours.id)
    removals = Removals(service.database)
    removals.begin(ours.id)
    await until(lambda: not removals.is_running(ours.id), "the deletion is still under way")
    ended = await key.call("GET", "/application")
    assert (ended.status, ended.body["code"]) == (401, "key_unknown")


async def test_a_key_is_made_for_no_application_that_its_user_does_not_see(service: Service) -> None:
    ours, theirs = await service.partner(), await service.partner()
    ada = await person(service, "ada@acme.example", await organisation(service, "Acme", ours), "owner")
    operator = await person(service, "op@frontage.example")
    for user, wanted, is_seen in (
        (ada.user, ours.id, True),
        (ada.user, theirs.id, False),
        (ada.user, "no such", False),
        (operator.user, theirs.id, True),
    ):
        made = None
        with suppress(Refused):
            async with service.database.transaction() as connection:
                made = await credentials.make_key(connection, user, "A key", Permission.VIEW, 1, wanted)
        assert (made is not None) == is_seen, (user.email, wanted)


async def test_a_key_ends_with_its_time_its_user_and_its_revocation(service: Service) -> None:
    acme = await organisation(service)
    ada = await person(service, "ada@acme.example", acme, "owner")
    other = await key_of(service, ada.user, Permission.VIEW)
    assert (await ada.call("GET", "/account")).body["key"]["permission"] == "own"
    listed = (await ada.call("GET", "/account/keys")).body["items"]
    assert [(each["permission"], each["usedAt"] is not None) for each in listed] == [("own", True), ("view", False)]
    assert ada.key not in str(listed)
    bob = await person(service, "bob@acme.example", acme, "owner")
    assert (await bob.call("DELETE", f"/account/keys/{other.key_id}")).status == 404
    assert (await ada.call("DELETE", f"/account/keys/{other.key_id}")).status == 200
    revoked = await other.call("GET", "/account")
    assert (revoked.status, revoked.body["code"]) == (401, "key_unknown")
    async with service.database.transaction() as connection:
        await connection.execute("update user_keys set expires_at = now() where id = $1", ada.key_id)
    expired = await ada.call("GET", "/account")
    assert (expired.status, expired.body["code"]) == (401, "key_expired")
    assert expired.headers["WWW-Authenticate"].endswith('error="invalid_token"')
    async with service.database.transaction() as connection:
        await users.delete_user(connection, bob.user)
    assert (await bob.call("GET", "/account")).status == 401


async def test_a_revoked_key_ends_the_links_and_configurations_that_it_made(service: Service, partner: Partner) -> None:
    acme = await organisation(service, "Acme", partner)
    ada = await person(service, "ada@acme.example", acme, "owner", application=partner)
    old, new = [await key_of(service, ada.user, Permission.OWN, application=partner) for _ in range(2)]

    def body(host: str) -> dict[str, Any]:
        record = {"type": "CNAME", "host": host, "value": "{CNAME_TARGET}", "ttl": 300}
        return {"json": {"config": {"dnsRecords": {"domain": [record], "subDomain": [record]}}}}

    async def register(by: Person | Partner, host: str) -> str:
        return str((await by.call("POST", "/connect/configurations", **body(host))).body["id"])

    made, renewed, shared = [await register(old, each) for each in ("made", "renewed", "shared")]
    assert (await register(new, "renewed"), await register(partner, "shared")) == (renewed, shared)
    links = [(await each.call("POST", "/sharing/connect", **body("link"))).body["id"] for each in (old, new)]
    async with service.database.transaction() as connection:
        flow = await connection.fetchval("select count(*) from shares where by_key = $1", old.key_id)
    assert flow == 1
    assert (await ada.call("DELETE", f"/account/keys/{old.key_id}")).status == 200
    listed = (await partner.call("GET", "/connect/configurations")).body["configurations"]
    assert {each["id"] for each in listed} == {renewed, shared}
    assert (await partner.call("GET", f"/connect/configurations/{made}")).status == 404
    left = (await partner.call("GET", "/sharing/connect")).body["links"]
    assert [each["id"] for each in left] == links[1:]


async def test_a_revoked_key_ends_the_flows_that_it_began_and_the_links_made_from_them(
    service: Service, partner: Partner
) -> None:
    acme = await organisation(service, "Acme", partner)
    ada = await person(service, "ada@acme.example", acme, "owner", application=partner)
    old, new = [await key_of(service, ada.user, Permission.OWN, application=partner) for _ in range(2)]
    record = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}
    of_browser = {"applicationId": partner.id, "Authorization": f"Bearer {partner.token(scope='connect')}"}

    async def begin(by: Person) -> str:
        begun = await by.call("POST", "/connect/flows", json={"dnsRecords": [record], "hostRequired": True})
        assert begun.status == 201, begun.body
        return f"/connect/flows/{begun.body['id']}"

    async def share(by: Person | Partner, flow: str, **options: Any) -> str:
        return str((await by.call("POST", f"{flow}/share", json={}, **options)).body["id"])

    of_old, of_new = await begin(old), await begin(new)
    ended = {await share(partner, of_old, headers=of_browser), await share(new, of_old), await share(old, of_new)}
    kept = await share(new, of_new)
    assert len(ended | {kept}) == 4

    assert (await ada.call("DELETE", f"/account/keys/{old.key_id}")).status == 200

    left = (await partner.call("GET", "/sharing/connect")).body["links"]
    assert [each["id"] for each in left] == [kept]
    refused = await partner.call("GET", of_old, headers=of_browser)
    assert (refused.status, refused.body["code"]) == (409, "key_revoked")
    refused = await new.call("POST", f"{of_old}/share", json={})
    assert (refused.status, refused.body["code"]) == (409, "key_revoked")
    assert (await partner.call("GET", of_new, headers=of_browser)).status == 200


async def test_a_role_that_changes_counts_at_once(service: Service, partner: Partner) -> None:
    acme = await organisation(service, "Acme", partner)
    owner = await person(service, "owner@acme.example", acme, "owner")
    dev = await person(service, "dev@acme.example", acme, "developer", application=partner)
    members = f"/organisations/{acme.id}/members"
    change = {"maintenance": True}
    assert (await dev.call("PUT", "/application", json=change)).status == 200
    demoted = await owner.call("PUT", members, json={"email": "dev@acme.example", "role": "viewer"})
    assert (demoted.status, demoted.body["signInOnce"]) == (200, None)
    refused = await dev.call("PUT", "/application", json=change)
    assert (refused.status, refused.body["code"]) == (403, "role")
    assert (await owner.call("DELETE", f"{members}/{dev.user.id}")).status == 200
    assert (await dev.call("GET", "/application")).status == 404
    assert (await dev.call("GET", members)).status == 404
    assert (await dev.call("GET", "/organisations")).body["items"] == []


async def test_a_user_has_a_bounded_number_of_keys(service: Service) -> None:
    ada = await person(service, "ada@acme.example", await organisation(service))
    async with service.database.transaction() as connection:
        for number in range(user_keys.MOST_OF_USER - 1):
            digest = str(number).encode()
            assert await user_keys.add(connection, ada.user, digest, "x", Permission.VIEW, 1) is not None
        assert await user_keys.add(connection, ada.user, b"more", "x", Permission.VIEW, 1) is None


async def test_members_are_added_listed_and_removed(service: Service) -> None:
    acme = await organisation(service)
    owner = await person(service, "m@acme.example", acme, "owner")
    members = f"/organisations/{acme.id}/members"
    for name in ("a", "b", "z"):
        added = await owner.call("PUT", members, json={"email": f"{name}@acme.example", "role": "viewer"})
        assert "/dashboard/link/" in added.body["signInOnce"]
    seen, after = [], ""
    while after is not None:
        part = (await owner.call("GET", f"{members}?limit=2{after and f'&after={after}'}")).body
        seen += [each["email"][0] for each in part["items"]]
        after = part["next"]
    assert seen == ["a", "b", "m", "z"]
    first = (await owner.call("GET", members)).body["items"][0]
    link = await owner.call("PUT", f"{members}/{first['id']}/link")
    assert "/dashboard/link/" in link.body["signInOnce"]
    last = await owner.call("DELETE", f"{members}/{owner.user.id}")
    assert (last.status, last.body["code"]) == (409, "last_owner")
    bob = await person(service, "bob@other.example", await organisation(service, "Other"))
    there = await owner.call("PUT", members, json={"email": "bob@other.example", "role": "viewer"})
    assert (there.status, there.body["code"]) == (409, "account_exists")
    for path in (f"{members}/{bob.user.id}", f"{members}/no%00such", f"{members}/{bob.user.id}/link"):
        method = "PUT" if path.endswith("link") else "DELETE"
        assert (await owner.call(method, path)).status == 404
    for bad in ({"email": "no address", "role": "viewer"}, {"email": "c@acme.example", "role": "king"}, {"role": 7}):
        assert (await owner.call("PUT", members, json=bad)).status == 400
    assert len((await owner.call("GET", members)).body["items"]) == 4


async def test_an_owner_makes_applications_once_for_each_idempotency_key(service: Service) -> None:
    acme = await organisation(service)
    owner = await person(service, "owner@acme.example", acme, "owner")
    body = {"name": "Shops", "cnameTarget": "apps.acme.example"}
    key = {"Idempotency-Key": "once"}
    first = await owner.call("POST", "/applications", json=body, headers=key)
    again = await owner.call("POST", "/applications", json=body, headers=key)
    assert (first.status, again.body, again.headers["Idempotent-Replayed"]) == (201, first.body, "true")
    assert (await owner.call("POST", "/applications", json=body)).status == 409
    assert (first.body["organisationId"], first.body["deleting"]) == (acme.id, None)
    for_tests = body | {"name": "Trial", "cnameTarget": "trial.acme.example", "test": True}
    assert (await owner.call("POST", "/applications", json=for_tests)).body["test"]
    application = str(first.body["applicationId"])
    rotated = await owner.call("PUT", "/application/secret", application=application, json={})
    assert len(rotated.body["clientSecret"]) == 64
    (listed,) = (await owner.call("GET", "/applications?search=SHOP")).body["items"]
    assert (listed["applicationId"], listed["deletingSince"], listed["test"]) == (application, None, False)
    assert listed["suspendedSince"] is None
    async with service.database.transaction() as connection:
        await policies.put(connection, "application", application, policies.LEGAL, "A court said so.")
    (listed,) = (await owner.call("GET", "/applications?search=SHOP")).body["items"]
    shown = (await owner.call("GET", "/application", application=application)).body["suspended"]
    assert shown == {"status": 451, "reason": "A court said so.", "since": listed["suspendedSince"]}
    assert (await owner.call("GET", "/applications?search=other")).body["items"] == []
    other = await organisation(service, "Other")
    foreign = await owner.call("POST", "/applications", json=body | {"organisationId": other.id})
    assert foreign.status == 404
    for wrong in ({"name": ""}, {"cnameTarget": "power.frontage.test"}, {"webhookUrl": "http://10.0.0.1/"}):
        assert (await owner.call("POST", "/applications", json=body | wrong)).status == 400


async def test_an_organisation_makes_a_bounded_number_of_applications(service: Service) -> None:
    acme = await organisation(service)
    owner, operator = await person(service, "owner@acme.example", acme, "owner"), await person(service, "o@x.test")
    async with service.database.transaction() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret, organisation_id)"
            " select 'a' || n, 'a', 'a' || n || '.example', '', '', $1 from generate_series(1, $2) n",
            acme.id,
            MOST_OF_ORGANISATION,
        )
    body = {"name": "One more", "cnameTarget": "apps.acme.example", "organisationId": acme.id}
    assert (await owner.call("POST", "/applications", json=body)).status == 409
    assert (await operator.call("POST", "/applications", json=body)).status == 201


async def test_a_list_of_applications_goes_on_where_it_stopped(service: Service) -> None:
    partners = [await service.partner() for _ in range(5)]  # all of one name
    acme = await organisation(service, "Acme", *partners)
    ada = await person(service, "ada@acme.example", acme, "viewer")
    seen, after = [], ""
    while after is not None:
        part = (await ada.call("GET", f"/applications?limit=2{after and f'&after={after}'}")).body
        seen += [each["applicationId"] for each in part["items"]]
        after = part["next"]
    assert sorted(seen) == sorted(each.id for each in partners)
    for wrong in ("after=x", "after=WzFd", "limit=0", "search=%00", "page=1"):
        assert (await ada.call("GET", f"/applications?{wrong}")).status == 400, wrong


async def test_operators_see_the_installation_and_set_what_partners_may_not(service: Service, partner: Partner) -> None:
    acme = await organisation(service)
    operator = await person(service, "ops@x.test", application=partner)
    looking = await key_of(service, operator.user, Permission.VIEW, application=partner)
    found = await operator.call("GET", "/operations")
    assert (found.status, len(found.body["certificates"]) > 0) == (200, True)
    assert (await looking.call("GET", "/operations")).status == 200
    settings = {"tier": "basic", "connect": False, "organisationId": acme.id}
    assert (await looking.call("PUT", "/application/operator", json=settings)).status == 403
    assert (await operator.call("PUT", "/application/operator", json=settings)).status == 200
    after = (await operator.call("GET", "/application")).body
    assert {name: after[name] for name in settings} == settings
    assert (await operator.call("PUT", "/application/operator", json={"organisationId": "no"})).status == 400
    made = await operator.call("POST", "/organisations", json={"name": "New"})
    assert (made.status, made.body["role"]) == (201, None)
    assert (await operator.call("POST", "/organisations", json={"name": "New"})).status == 409
    owner = await person(service, "owner@acme.example", acme, "owner", application=partner)
    assert (await owner.call("PUT", "/application/operator", json=settings)).status == 404
    assert (await owner.call("POST", "/organisations", json={"name": "Mine"})).status == 404
    service.point(SHOP)
    await partner.post(SHOP)
    reason = {"reason": "Phishing was reported."}
    assert (await owner.call("POST", f"/domains/{SHOP}/block", json=reason)).status == 404
    assert (await operator.call("POST", f"/domains/{SHOP}/block", json={"reason": "\n"})).status == 400
    assert (await operator.call("POST", f"/domains/{SHOP}/block", json=reason)).status == 200
    assert (await owner.call("POST", f"/domains/{SHOP}/unblock")).status == 404
    assert (await operator.call("POST", f"/domains/{SHOP}/unblock")).status == 200
    assert (await operator.call("POST", f"/domains/{SHOP}/unblock")).status == 409
    assert (await owner.call("POST", f"/domains/{SHOP}/free")).status == 404
    assert (await operator.call("POST", f"/domains/{SHOP}/free")).status == 200
    assert (await operator.call("POST", f"/domains/{SHOP}/free")).status == 404


async def test_a_deletion_is_followed_until_the_application_is_gone(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.point(SHOP)
    await partner.post(SHOP)
    acme = await organisation(service, "Acme", partner)
    owner = await person(service, "owner@acme.example", acme, "owner", application=partner)
    dev = await person(service, "dev@acme.example", acme, "developer", application=partner)
    assert (await dev.call("DELETE", "/application", json={"name": "A partner"})).status == 403
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)  # as a process that ended did
    assert (await partner.call("GET", "/application")).status == 401
    deleting = (await dev.call("GET", "/application")).body["deleting"]
    assert (deleting["domains"], deleting["monitored"]) == (1, 0)
    refused = await dev.call("GET", "/power")
    assert (refused.status, refused.body["code"]) == (403, "application_deleting")
    (listed,) = (await dev.call("GET", "/applications")).body["items"]
    assert listed["deletingSince"] is not None
    assert (await owner.call("DELETE", "/application", json={"name": "A partner"})).status == 202

    async def is_gone() -> bool:
        async with service.database.connection() as connection:
            return await get_application(connection, partner.id) is None

    await until(is_gone, "the application is still there")
    assert (await dev.call("GET", "/application")).status == 404
