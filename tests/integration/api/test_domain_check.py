"""POST /checkdomain: the lab's name server is a domain's zone and the zone above it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bench.lab.zone import Behaviour
from common.db.applications import update_application
from tests.integration.api.conftest import SERVER, Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.timeouts import UNHURRIED

APEX = "shop.test"
UNRESOLVED = "Domain provided couldn't be resolved."


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None) as service:
        zone = service.zone
        zone.add("test", "NS", "ns.test")
        zone.add("ns.test", "A", "127.0.0.1")
        zone.add(APEX, "NS", "ns1.hosting.test")
        zone.add(APEX, "NS", "ns2.hosting.test")
        zone.add(APEX, "SOA", "ns1.hosting.test hostmaster.hosting.test 1 3600 600 86400 60")
        zone.add("ns1.hosting.test", "A", "127.0.0.1")
        zone.add("ns2.hosting.test", "A", "127.0.0.1")
        yield service


async def check(partner: Partner, domain: str = APEX, **fields: Any) -> Answer:
    return await partner.call("POST", "/checkdomain", json={"domain": domain, **fields})


def record(kind: str, host: str, value: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "host": host, "value": value, "ttl": 300, **fields}


async def test_an_unknown_provider_is_named_after_its_servers_and_promises_nothing(partner: Partner) -> None:
    answer = await check(partner)

    assert (answer.status, answer.body) == (
        200,
        {
            "provider": "hosting.test",
            "setupType": "manual",
            "NSSupport": {"root": False, "subdomains": False},
            "wwwRedirect": False,
            "cnameFlattening": False,
            "wildcardSupport": False,
            "subdomainCnameNsOverride": False,
            "spfOverrideSupport": False,
            "caaSupport": False,
            "supportsSocialLogin": "no",
            "expired": False,
            "registered": True,
        },
    )


async def test_only_premium_and_above_may_check(service: Service, partner: Partner) -> None:
    for tier, status in (("basic", 403), ("enterprise", 200), ("premium", 200)):
        async with service.database.transaction() as connection:
            await update_application(connection, partner.id, tier=tier)
        answer = await check(partner)
        assert answer.status == status, tier
        if status == 403:
            assert (answer.message, answer.body["code"]) == ("Forbidden", "tier")


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        ("www.shop.test", "shop.test"),
        ("https://www.shop.test/path?x", "shop.test"),
        ("shop.test:8080", "shop.test"),
        ("*.shop.test", "shop.test"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("192.0.2.1", None),
        ("[2001:db8::1]", None),
        ("test", None),
        ("", None),
        ("..", None),
        ("a" * 300 + ".test", None),
    ],
)
async def test_what_is_no_apex_is_refused_and_the_hint_names_it(
    service: Service, domain: str, named: str | None
) -> None:
    answer = await check(await service.partner(), domain)

    assert (answer.status, answer.message) == (400, "Invalid 'domain' parameter")
    assert answer.body["hint"]
    assert named is None or answer.body["hint"].endswith(named)


async def test_upper_case_a_final_dot_and_idn_are_the_same_domain(service: Service, partner: Partner) -> None:
    service.zone.add("xn--bcher-kva.test", "NS", "ns1.hosting.test")
    for name in ("SHOP.test.", "bücher.test", "xn--bcher-kva.TEST"):
        assert (await check(partner, name)).status == 200, name


async def test_conflicts_need_records(partner: Partner) -> None:
    without: tuple[dict[str, Any], ...] = ({}, {"dnsRecords": []}, {"dnsRecords": None})
    for fields in without:
        answer = await check(partner, checkConflicts=True, **fields)
        assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")


async def test_conflicts_are_there_only_when_asked_and_null_when_there_are_none(
    service: Service, partner: Partner
) -> None:
    service.zone.add(f"www.{APEX}", "CNAME", "old.elsewhere.test")
    wanted = [record("CNAME", "www", "target.partner.test")]

    assert "recordConflicts" not in (await check(partner, dnsRecords=wanted)).body
    assert "recordConflicts" not in (await check(partner, dnsRecords=wanted, checkConflicts=False)).body
    found = (await check(partner, dnsRecords=wanted, checkConflicts=True)).body["recordConflicts"]
    assert [(each["host"], each["type"], each["value"]) for each in found] == [("www", "CNAME", "old.elsewhere.test")]
    assert found[0]["reason"].startswith("www has a CNAME")
    none = await check(partner, dnsRecords=[record("A", "free", "192.0.2.1")], checkConflicts=True)
    assert none.body["recordConflicts"] is None


async def test_a_mail_server_in_conflict_has_its_priority_as_text(service: Service, partner: Partner) -> None:
    service.zone.add(APEX, "MX", "10 mail.elsewhere.test")

    answer = await check(partner, dnsRecords=[record("MX", "@", "mx.new.test", priority="5")], checkConflicts=True)

    assert [(each["host"], each["value"], each["priority"]) for each in answer.body["recordConflicts"]] == [
        ("@", "mail.elsewhere.test", "10")
    ]


async def test_spf_in_conflict_suggests_the_merged_value(service: Service, partner: Partner) -> None:
    service.zone.add(APEX, "TXT", '"v=spf1 include:spf.elsewhere.test ~all"')
    service.zone.add("spf.elsewhere.test", "TXT", '"v=spf1 ip4:192.0.2.0/24 -all"')
    service.zone.add("spf.new.test", "TXT", '"v=spf1 ip4:198.51.100.0/24 -all"')

    answer = await check(
        partner, dnsRecords=[record("TXT", "@", "v=spf1 include:spf.new.test -all")], checkConflicts=True
    )

    assert [each["suggestedValue"] for each in answer.body["recordConflicts"]] == [
        "v=spf1 include:spf.elsewhere.test include:spf.new.test ~all"
    ]


async def test_name_servers_in_the_request_add_the_provider_of_the_zone(partner: Partner) -> None:
    plain = await check(partner, dnsRecords=[record("A", "@", "192.0.2.1")])
    answer = await check(partner, dnsRecords=[record("NS", "sub", "ns1.new.test")])

    assert "authoritativeDnsProvider" not in plain.body
    beside = {"NSSupport", "expired", "registered", "authoritativeDnsProvider"}
    assert answer.body["authoritativeDnsProvider"] == {
        field: value for field, value in answer.body.items() if field not in beside
    }


async def test_ttl_may_be_text_and_other_keys_of_the_configuration_are_taken(partner: Partner) -> None:
    body: dict[str, Any] = {
        "applicationId": partner.id,
        "token": "x",
        "power": True,
        "prefilledDomain": APEX,
        "hostRequired": True,
        "whiteLabel": {"theme": {}},
        "userId": "u1",
    }

    answer = await check(
        partner, **body, dnsRecords=[record("A", "@", "192.0.2.1") | {"ttl": "300", "monitor": True, "ssl": True}]
    )
    assert answer.status == 200


@pytest.mark.parametrize(
    "bad",
    [
        record("A", "@", "192.0.2.1") | {"ttl": "soon"},
        record("A", "@", "192.0.2.1") | {"ttl": "0"},
        record("A", "@", "192.0.2.1") | {"ssl": "yes"},
        record("A", "@", "host.test"),
        record("HTTP", "@", "x"),
        record("A", "", "192.0.2.1"),
        record("CNAME", f"www.{APEX}", "target.test"),
        {"type": "A"},
        "record",
    ],
)
async def test_a_bad_record_is_refused_and_named(service: Service, bad: Any) -> None:
    answer = await check(await service.partner(), dnsRecords=[record("A", "@", "192.0.2.1"), bad], checkConflicts=True)

    assert (answer.status, answer.message) == (400, "Invalid 'dnsRecords' parameter")
    assert answer.body["hint"].startswith("dnsRecords[1]: ")


async def test_a_domain_that_the_zone_above_does_not_have_is_not_registered(service: Service) -> None:
    answer = await check(
        await service.partner(), "absent.test", dnsRecords=[record("A", "@", "192.0.2.1")], checkConflicts=True
    )

    assert answer.status == 200
    assert (answer.body["registered"], answer.body["expired"]) == (False, False)
    assert answer.body["recordConflicts"] is None


@pytest.mark.parametrize(("behaviour", "code"), [(Behaviour.SERVFAIL, "servfail"), (Behaviour.TIMEOUT, "timeout")])
async def test_what_could_not_be_asked_is_an_error_with_a_code(
    service: Service, behaviour: Behaviour, code: str
) -> None:
    service.zone.misbehave(APEX, behaviour)

    answer = await check(await service.partner(), dnsRecords=[record("A", "@", "192.0.2.1")], checkConflicts=True)

    assert (answer.status, answer.message, answer.body["code"]) == (400, UNRESOLVED, code)
    assert answer.body["request_id"]


async def test_a_host_whose_records_could_not_be_asked_is_never_free_of_conflicts(service: Service) -> None:
    service.zone.misbehave(f"www.{APEX}", Behaviour.SERVFAIL)

    answer = await check(await service.partner(), dnsRecords=[record("A", "www", "192.0.2.1")], checkConflicts=True)

    assert (answer.status, answer.body["code"]) == (400, "servfail")


async def test_placeholders_are_filled_in_as_a_flow_does_it(service: Service, partner: Partner) -> None:
    service.zone.add(f"www.{APEX}", "CNAME", "old.elsewhere.test")
    service.zone.add(APEX, "A", SERVER)
    wanted = [record("CNAME", "{SUBDOMAIN}", "{CNAME_TARGET}", ssl=True), record("A", "@", "{SERVICE_SERVERS}")]

    answer = await check(partner, dnsRecords=wanted, checkConflicts=True, hostRequired=True)

    assert [(each["host"], each["type"]) for each in answer.body["recordConflicts"]] == [("www", "CNAME")]
    service.zone.replace(f"www.{APEX}", "CNAME", "target-1.partner.test")
    assert (await check(partner, dnsRecords=wanted, checkConflicts=True, hostRequired=True)).body[
        "recordConflicts"
    ] is None
    bad = await check(partner, dnsRecords=[record("TXT", "@", "{SERVICE_SERVERS}")], checkConflicts=True)
    assert (bad.status, bad.message) == (400, "Invalid 'dnsRecords' parameter")


async def test_the_roots_own_record_is_checked_where_the_flow_would_set_it(service: Service, partner: Partner) -> None:
    service.zone.add(APEX, "A", "192.0.2.77")
    wanted = [record("CNAME", "www", "target-1.partner.test")]
    assert (await check(partner, dnsRecords=wanted, checkConflicts=True)).body["recordConflicts"] is None
    switches: tuple[dict[str, Any], ...] = ({"wwwRedirect": True}, {"secureRootDomain": True})
    for fields in switches:
        answer = await check(partner, dnsRecords=wanted, checkConflicts=True, hostRequired=True, **fields)
        found = answer.body["recordConflicts"]
        assert [(each["host"], each["value"]) for each in found] == [("@", "192.0.2.77")], fields


async def test_a_registered_configuration_counts_by_its_id_and_by_the_token(service: Service, partner: Partner) -> None:
    service.zone.add(f"www.{APEX}", "CNAME", "old.elsewhere.test")
    templates = [record("CNAME", "{SUBDOMAIN}", "{CNAME_TARGET}", ssl=True)]
    config = {"dnsRecords": {"subDomain": templates}, "hostRequired": True, "checkConflicts": True}
    own = await _register(partner, config)
    other = await _register(partner, config | {"defaultSubdomain": "shop"})

    by_id, by_token = partner.token(scope="connect"), partner.token(scope="connect", configurationId=own)
    sent: tuple[tuple[str, dict[str, Any]], ...] = (
        (partner.token(), {"configurationId": own}),
        (by_id, {"configurationId": own}),
        (by_token, {}),
        (by_token, {"configurationId": own, **config, "dnsRecords": None}),
    )
    for token, fields in sent:
        answer = await _check_by(partner, token, **fields)
        assert answer.status == 200, answer.body
        assert [(each["host"], each["type"]) for each in answer.body["recordConflicts"]] == [("www", "CNAME")], fields
    (checked,) = (await _check_by(partner, by_token, "/checkrecords")).body["records"]
    assert (checked["host"], checked["value"], checked["status"]) == ("www", "target-1.partner.test", "missing")

    unlike = await _check_by(partner, by_token, dnsRecords=[record("A", "@", "192.0.2.1")])
    assert (unlike.status, unlike.body["code"]) == (403, "outside_configuration")
    refused = await _check_by(partner, by_token, configurationId=other)
    assert (refused.status, refused.body["code"]) == (403, "configuration")
    assert (await partner.call("DELETE", f"/connect/configurations/{own}")).status == 200
    gone = await _check_by(partner, by_token)
    assert (gone.status, gone.body["code"]) == (404, "configuration_not_found")
    foreign = await check(await service.partner(), configurationId=other)
    assert (foreign.status, foreign.body["code"]) == (404, "configuration_not_found")
    odd = await check(partner, configurationId="cfg_x")
    assert (odd.status, odd.message) == (400, "Invalid 'configurationId' parameter")


async def _register(partner: Partner, config: dict[str, Any]) -> str:
    return str((await partner.call("POST", "/connect/configurations", json={"config": config})).body["id"])


async def _check_by(partner: Partner, token: str, path: str = "/checkdomain", **fields: Any) -> Answer:
    headers = {"applicationId": partner.id, "Authorization": f"Bearer {token}"}
    return await partner.call("POST", path, json={"domain": APEX, **fields}, headers=headers)
