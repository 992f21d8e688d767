"""``GET /domains/:domain/diagnosis``, with a real name server, a real database and whatever goes wrong with them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bench.lab.zone import Behaviour
from common.db import acme_accounts, applications, domains
from common.db.acme_accounts import Identity, SealedKey
from common.db.domains import Domain
from common.db.session import Connection
from common.errors import DatabaseUnavailable
from tests.integration.api.conftest import SERVER, Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.secured import Ssl, fail_order, go_live, serve_origin
from tests.integration.api.test_eligibility import cdn
from tests.timeouts import UNHURRIED

DOMAIN = "shop.customer.test"
PARTS = {
    "domain",
    "status",
    "next_step",
    "products",
    "ownership",
    "dns",
    "caa",
    "challenge_path",
    "certificate",
    "order",
    "monitor",
    "edges",
    "origin",
    "blocked",
}


async def diagnose(partner: Partner, domain: str = DOMAIN) -> dict[str, Any]:
    answer = await ask(partner, domain)
    assert answer.status == 200, answer.body
    assert set(answer.body) == PARTS
    body: dict[str, Any] = answer.body
    return body


async def ask(partner: Partner, domain: str = DOMAIN) -> Answer:
    return await partner.call("GET", f"/domains/{domain}/diagnosis")


async def test_a_domain_is_followed_from_no_record_to_all_is_well(service: Service) -> None:
    async with serve_origin() as origin:
        partner = await service.partner()
        ssl = Ssl(partner, origin.url)

        found = await diagnose(partner)
        assert (found["status"], found["dns"]["status"]) == ("action needed", "missing")
        assert f"Create the record CNAME {DOMAIN} target-1.partner.test" in found["next_step"]

        service.zone.add(DOMAIN, "A", "192.0.2.99")
        found = await diagnose(partner)
        assert found["dns"]["status"] == "wrong"
        assert found["dns"]["found"] == [{"type": "A", "host": DOMAIN, "value": "192.0.2.99"}]
        assert found["dns"]["expected"] == [{"type": "CNAME", "host": DOMAIN, "value": "target-1.partner.test"}]

        service.zone.remove(DOMAIN)
        service.point(DOMAIN)
        found = await diagnose(partner)
        assert found["dns"]["status"] == "ok"
        assert found["dns"]["cname_target"]["status"] == "ok"
        assert found["next_step"] == "The DNS is right. Enrol the domain: POST /power or POST /ssl."
        assert (found["products"], found["certificate"], found["order"]) == ([], {"status": "none"}, None)

        await ssl.post(DOMAIN)
        found = await diagnose(partner)
        assert (found["status"], found["order"]["status"]) == ("waiting", "running")
        assert [each["product"] for each in found["products"]] == ["secure"]

        await fail_order(service, DOMAIN)
        async with service.database.connection() as connection:
            await connection.execute(
                "update orders set last_error = 'the CA was away', due_at = now() + interval '1 hour'"
            )
        found = await diagnose(partner)
        assert found["status"] == "action needed"
        assert "the CA was away. The next attempt is at 20" in found["next_step"]
        assert found["order"]["last_error"] == "the CA was away"

        await go_live(service, DOMAIN, partner.id)
        found = await diagnose(partner)
        assert (found["status"], found["certificate"]["status"]) == ("ok", "live")
        assert found["certificate"]["issuer"] == "internal"
        assert found["certificate"]["not_before"] < found["certificate"]["live_at"] < found["certificate"]["not_after"]


async def test_step_one_is_named(service: Service) -> None:
    partner = await service.partner(step_one=False)
    service.point(DOMAIN)

    found = await diagnose(partner)

    assert found["next_step"].startswith("Point the cname target target-1.partner.test to power.frontage.test or ")
    assert found["dns"]["cname_target"]["status"] == "wrong"


async def test_either_target_will_do_for_a_domain_that_nobody_has(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await applications.update_application(connection, partner.id, secure_cname_target="ssl.partner.test")
    service.zone.add("ssl.partner.test", "CNAME", "secure.frontage.localhost")
    service.zone.add(DOMAIN, "CNAME", "ssl.partner.test")

    found = await diagnose(partner)

    assert (found["dns"]["status"], found["dns"]["expected"][0]["value"]) == ("ok", "ssl.partner.test")


async def test_a_root_is_told_its_addresses(service: Service, partner: Partner) -> None:
    service.zone.add("customer.test", "A", SERVER)
    service.zone.add("customer.test", "A", "192.0.2.99")

    found = await diagnose(partner, "customer.test")

    assert found["dns"]["status"] == "wrong"
    assert f"A customer.test {SERVER}, AAAA customer.test 2001:db8::10" in found["next_step"]
    assert found["dns"]["cname_target"] is None


async def test_caa_is_found_up_the_tree(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    assert (await diagnose(partner))["caa"] == {"status": "anyone may issue", "needed": False}

    service.zone.add("customer.test", "CAA", '0 issue "other.example"')
    assert (await diagnose(partner))["caa"] == {
        "status": "restricted",
        "host": "customer.test",
        "records": ["0 issue other.example"],
        "authorities": ["other.example"],
        "needed": False,
    }

    service.zone.replace("customer.test", "CAA", '0 issue ";"')
    assert (await diagnose(partner))["caa"]["status"] == "forbidden"

    service.zone.misbehave("customer.test", Behaviour.SERVFAIL)
    assert (await diagnose(partner))["caa"]["status"] == "unknown"


async def test_with_a_public_authority_its_caa_and_limits_are_told(dsn: str, tmp_path: Path, probe_port: int) -> None:
    directory = "https://ca.test/directory"
    environ: dict[str, Any] = {"ISSUER": "acme", "ACME_DIRECTORY": directory, "ACME_CAA_IDENTITIES": "ca.test"}
    async with (
        open_service(dsn, tmp_path, probe_port, UNHURRIED, **environ) as service,
        serve_origin() as origin,
    ):
        partner = await service.partner()
        service.point(DOMAIN)
        await Ssl(partner, origin.url).post(DOMAIN)
        await fail_order(service, DOMAIN)
        service.zone.add("customer.test", "CAA", '0 issue "ca.test"')
        async with service.database.connection() as connection:
            await connection.execute("update orders set last_error = 'it was not to be', due_at = now()")

        found = await diagnose(partner)
        assert (found["caa"]["status"], found["caa"]["needed"]) == ("restricted", True)
        assert "(port 80) reach us: they reach no server" in found["next_step"]

        service.zone.replace("customer.test", "CAA", '0 issue "another.test"')
        found = await diagnose(partner)
        assert found["caa"]["status"] == "forbidden"
        assert found["next_step"].startswith("Change the CAA records of customer.test: they let another.test issue")

        async with service.database.transaction() as connection:  # what a monitor learns by asking the CA
            await acme_accounts.keep_key(connection, SealedKey(b"", "thumbprint"))
            identity = Identity(("another.test",), "https://ca.test/account/1")
            await acme_accounts.keep_identity(connection, directory, "thumbprint", identity)
        assert (await diagnose(partner))["caa"]["status"] == "restricted"

        async with service.database.connection() as connection:
            await connection.execute(
                "insert into ca_ledger (issuer, kind, domain, registered_domain)"
                " select $1, 'failed_validation', $2, 'customer.test' from generate_series(1, 5)",
                directory,
                DOMAIN,
            )
        found = await diagnose(partner)
        assert (found["status"], found["next_step"][:5]) == ("waiting", "Wait:")
        assert found["order"]["next_free_slot"] is not None


@pytest.mark.parametrize(("behaviour", "code"), [(Behaviour.SERVFAIL, "servfail"), (Behaviour.TIMEOUT, "timeout")])
async def test_dns_that_cannot_be_asked_is_unknown_in_bounded_time(
    service: Service, partner: Partner, behaviour: Behaviour, code: str
) -> None:
    service.zone.misbehave(DOMAIN, behaviour)
    began = time.monotonic()

    found = await diagnose(partner)

    assert time.monotonic() - began < 12
    assert (found["status"], found["dns"]["status"], found["dns"]["code"]) == ("unknown", "unknown", code)
    assert found["challenge_path"]["reaches"] == "unknown"
    assert found["certificate"] == {"status": "none"}


async def test_behind_a_proxy_it_is_our_edges_answer_that_tells(
    service: Service, partner: Partner, probe_port: int
) -> None:
    service.zone.add(DOMAIN, "A", "127.0.0.1")
    assert (await diagnose(partner))["challenge_path"]["reaches"] == "no server"

    async with cdn(service, probe_port, "error"):
        found = await diagnose(partner)
        assert (found["challenge_path"]["reaches"], found["dns"]["status"]) == ("another server", "wrong")
    async with cdn(service, probe_port):
        found = await diagnose(partner)
        assert (found["challenge_path"]["reaches"], found["dns"]["status"]) == ("us", "ok, behind a proxy")


async def test_parts_that_fail_are_unknown_and_the_others_stand(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.point(DOMAIN)

    async def break_down(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("common.db.orders.describe", break_down)
    monkeypatch.setattr("common.caa.find_authorization", break_down)
    assert (await partner.post(DOMAIN)).status == 200

    found = await diagnose(partner)

    assert found["dns"]["status"] == "ok"
    assert (found["caa"]["status"], found["certificate"]["status"], found["order"]["status"]) == ("unknown",) * 3
    assert found["status"] == "unknown"


async def test_the_enrolments_are_read_once(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.point(DOMAIN)
    assert (await partner.post(DOMAIN)).status == 200
    find, asked = domains.find, list[str]()

    async def counted(connection: Connection, domain: str) -> list[Domain]:
        asked.append(domain)
        return await find(connection, domain)

    monkeypatch.setattr("common.db.domains.find", counted)
    found = await diagnose(partner)

    assert [each["product"] for each in found["products"]] == ["power"]
    assert asked == [DOMAIN]


async def test_without_the_enrolments_the_other_parts_stand(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.point(DOMAIN)
    assert (await partner.post(DOMAIN)).status == 200

    async def break_down(*_: object) -> None:
        raise DatabaseUnavailable("out of order")

    monkeypatch.setattr("common.db.domains.find", break_down)
    found = await diagnose(partner)

    assert (found["status"], found["dns"]["status"], found["origin"]["status"]) == ("unknown",) * 3
    assert (found["caa"]["status"], found["monitor"]["status"]) == ("anyone may issue", "running")
    assert found["next_step"] == "Not everything could be looked at: ask again in a moment."


async def test_of_a_foreign_domain_only_that_is_shown(service: Service) -> None:
    async with serve_origin() as origin:
        owner, other = await service.partner(), await service.partner()
        service.point(DOMAIN)
        before = await diagnose(other)
        await Ssl(owner, origin.url).post(DOMAIN)
        await go_live(service, DOMAIN, owner.id)

        found = await diagnose(other)
        assert found["ownership"]["status"] == "another application's"
        assert "another application holds" in found["next_step"].lower()
        for part in before.keys() - {"ownership", "next_step", "status"}:
            assert found[part] == before[part], part
        owned = await diagnose(owner)
        assert (owned["status"], owned["ownership"]["status"], owned["ownership"]["claim"]) == ("ok", "yours", "cname")


async def test_who_asks_must_say_who_and_what(partner: Partner) -> None:
    assert (await partner.call("GET", f"/domains/{DOMAIN}/diagnosis", headers={})).status == 401
    for name in (
        "%00",
        "com",
        "127.0.0.1",
        "*.*.customer.test",
        "a" * 300,
        "%F0%9F%98%80..test",
        "shop.customer.test%2F",
    ):
        answer = await ask(partner, name)
        assert (answer.status, answer.message) == (400, "Domain provided couldn't be resolved."), name
    assert (await ask(partner, "BÜCHER.customer.test.")).body["domain"] == "xn--bcher-kva.customer.test"
    assert (await partner.call("POST", f"/domains/{DOMAIN}/diagnosis")).status == 405


async def test_private_addresses_that_the_operators_resolver_knows_are_not_shown(
    service: Service, partner: Partner
) -> None:
    for private in ("10.1.2.3", "192.168.7.7"):
        service.zone.add(DOMAIN, "A", private)
    service.zone.add(DOMAIN, "A", "9.9.9.9")
    service.zone.add(DOMAIN, "AAAA", "fd00::1")

    answer = await ask(partner, DOMAIN)

    assert answer.status == 200
    found = [record["value"] for record in answer.body["dns"]["found"]]
    assert sorted(found) == ["9.9.9.9", *["a private address"] * 3]
    for address in ("10.1.2.3", "192.168.7.7", "fd00::1"):
        assert address not in str(answer.body)
