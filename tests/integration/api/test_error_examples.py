"""The handbook's example of each code of an error: the request that is answered so, and the very answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import ExtendedKeyUsage
from cryptography.x509.oid import ExtendedKeyUsageOID

from bench.lab.zone import Behaviour
from common.accounts import Permission
from common.db import flow_ends
from common.flow_states import State
from tests.certificates import Authority, ec_key, pem_of
from tests.integration.api import error_cases as cases
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.error_cases import CONFIG, POWER, SHOP, Ready, Setup, check_example, own
from tests.timeouts import UNHURRIED

CERTIFICATE = f"/domains/{SHOP}/certificate"
CHECK = {"domain": "customer.test"}
FLOWS, FLOW = "/connect/flows", "/connect/flows/{flow}"
MEMBERS = "/organisations/{organisation}/members"
BOB = {"email": "bob@other.example", "role": "viewer"}
CA, KEY = Authority(), ec_key()
LEAF = CA.leaf(KEY, SHOP)
CURVE = ec.generate_private_key(ec.SECP521R1())
CLIENTS = CA.leaf(KEY, SHOP, extensions=[ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])
WWW = {"domain": SHOP, "redirectTo": "https://www.customer.test"}
WATCHED = "/monitor/domains"
WATCH = {"domain": "customer.test", "dnsRecords": [{"type": "TXT", "host": "@", "value": "acme=1", "ttl": 300}]}
ORIGIN = {"applicationUrl": POWER["applicationUrl"]}
TEXT = {"dnsRecords": WATCH["dnsRecords"]}
ROOT_ONLY = {"dnsRecords": {"domain": WATCH["dnsRecords"]}}

Case = tuple[Setup, str, str, Any]

ACCESS: dict[str, Case] = {
    "token_missing": (cases.without_token, "GET", "/power", None),
    "token_unsigned": (cases.by_anothers_token, "GET", "/power", None),
    "token_expired": (cases.by_token(timedelta(minutes=-5)), "GET", "/power", None),
    "token_too_long": (cases.by_token(timedelta(days=2)), "GET", "/power", None),
    "token_not_yet_valid": (cases.by_token(nbf=4_000_000_000), "GET", "/power", None),
    "scope": (cases.by_token(scope="connect"), "GET", "/power", None),
    "user": (cases.by_token(scope="connect", userId=""), "POST", FLOWS, CONFIG | {"domain": SHOP}),
    "key_unknown": (cases.by_unknown_key, "GET", "/power", None),
    "key_expired": (cases.by_expired_key, "GET", "/power", None),
    "key_needed": (cases.nothing, "GET", "/organisations", None),
    "key_of_application": (cases.by_key_of_application, "GET", "/organisations", None),
    "application": (cases.by_key(names_application=False), "GET", "/power", None),
    "application_deleting": (cases.deleting, "GET", "/power", None),
    "role": (cases.by_key("viewer", Permission.VIEW), "POST", "/power", POWER),
    "own_link": (cases.by_key(), "PUT", f"{MEMBERS}/{{user}}/link", None),
    "account_exists": (cases.beside_another_organisation, "PUT", MEMBERS, BOB),
    "account_shared": (cases.with_a_member_of_others, "PUT", MEMBERS, BOB | {"role": "owner"}),
    "last_owner": (cases.by_key(), "DELETE", f"{MEMBERS}/{{user}}", None),
    "members": (cases.with_most_members, "PUT", MEMBERS, {"email": "eve@acme.example", "role": "viewer"}),
    "idempotency_key_reused": (cases.sent_before(WATCH | {"domain": "other.test"}), "POST", WATCHED, WATCH),
    "idempotency_key_running": (cases.sent_before(WATCH, is_running=True), "POST", WATCHED, WATCH),
    "unauthorized": (cases.without_token, "POST", "/token", {"applicationId": cases.ID, "secret": "another's"}),
    "forbidden": (cases.by_token_for_another_application, "GET", "/power", None),
    "not_found": (cases.nothing, "GET", "/domains", None),
    "method_not_allowed": (cases.nothing, "PATCH", "/power", {}),
    "key_not_found": (cases.by_key(), "DELETE", f"/account/keys/key_{cases.ID}", None),
    "not_a_member": (cases.by_key(), "DELETE", f"{MEMBERS}/usr_{cases.ID}", None),
    "organisation_taken": (cases.by_operator, "POST", "/organisations", {"name": "Acme"}),
    "target_taken": (
        cases.beside_another_application,
        "PUT",
        "/application",
        {"cnameTarget": "target-2.partner.test"},
    ),
    "service_auth_state": (cases.nothing, "PUT", "/application/service-auth", {"action": "finish"}),
    "no_webhook": (cases.nothing, "POST", "/webhooks/test", {}),
    "webhook_disabled": (cases.webhook_disabled, "POST", "/webhooks/test", {}),
    "invalid_parameter": (cases.nothing, "GET", "/power?size=many", None),
    "invalid_body": (cases.nothing, "POST", "/monitor/domains", [SHOP]),
    "internal": (cases.database_fails, "POST", "/power", POWER),
}
MONITOR: dict[str, Case] = {
    "not_monitored": (cases.nothing, "GET", f"{WATCHED}/customer.test", None),
    "not_empty": (cases.watched(WATCH), "DELETE", WATCHED, {"domain": "customer.test", "deleteOnlyIfEmpty": True}),
    "missing_domains": (cases.nothing, "POST", f"{WATCHED}/batch", {"domains": []}),
    "batch_not_found": (cases.nothing, "GET", f"{WATCHED}/batch/status/bat_{cases.ID}", None),
    "batch_forbidden": (cases.batch_of_another, "GET", f"{WATCHED}/batch/status/{{batch}}", None),
}
ENROLMENTS: dict[str, Case] = {
    "invalid": (cases.nothing, "GET", "/power?domain=*.customer.test", None),
    "nxdomain": (cases.nothing, "POST", "/power", POWER),
    "servfail": (cases.misbehaves(Behaviour.SERVFAIL), "POST", "/power", POWER),
    "timeout": (cases.misbehaves(Behaviour.TIMEOUT), "POST", "/power", POWER),
    "cname_chain": (cases.record("CNAME", SHOP), "POST", "/power", POWER),
    "step_one": (cases.lacks_step_one, "POST", "/power", POWER),
    "not_eligible": (cases.record("A", "192.0.2.77"), "POST", "/power", POWER),
    "txt_record_needed": (cases.unproven, "POST", "/power", POWER),
    "no_origin": (cases.points, "POST", "/ssl", {"domain": SHOP}),
    "origin_path": (cases.points, "POST", "/ssl", POWER),
    "origin_refused": (cases.points, "POST", "/power", POWER | {"applicationUrl": "http://10.0.0.1/"}),
    "origin_unreachable": (cases.points, "POST", "/ssl", POWER | {"applicationUrl": "https://origin.example.com"}),
    "domain_not_valid": (cases.nothing, "PUT", "/power", POWER),
    "enrolled": (cases.powered, "POST", "/power", POWER),
    "enrolled_too_often": (cases.too_often, "POST", "/power", POWER),
    "ordering": (cases.secured, "POST", "/ssl", WWW),
    "not_renewable": (cases.gone_elsewhere, "PUT", "/ssl", {"domain": SHOP}),
    "root": (cases.nothing, "POST", "/power", POWER | {"domain": "customer.test"}),
    "reserved": (cases.nothing, "POST", "/power", POWER | {"domain": "power.frontage.test"}),
    "loop": (cases.points, "POST", "/ssl", {"domain": SHOP, "redirectTo": SHOP}),
    "domain_blocked": (cases.blocked, "POST", "/power", POWER),
    "application_suspended": (cases.suspended, "POST", "/power", POWER),
    "held_unknown": (cases.anothers, "POST", "/power", POWER),
    "not_enrolled": (cases.nothing, "POST", f"/domains/{SHOP}/status-link", {}),
    "not_blocked": (cases.powered_by_operator, "POST", f"/domains/{SHOP}/unblock", None),
    "not_transferable": (cases.by_key(), "POST", f"/domains/{SHOP}/transfer", {"to": cases.ID}),
    "preparing_unavailable": (cases.nothing, "POST", f"/domains/{SHOP}/prepare", {"product": "power"} | ORIGIN),
    "not_prepared": (cases.nothing, "DELETE", f"/domains/{SHOP}/prepare", None),
    "no_own_certificate": (cases.powered, "DELETE", CERTIFICATE, None),
    "certificate_invalid": (cases.powered, "PUT", CERTIFICATE, {"certificate": "no PEM", "privateKey": pem_of(KEY)}),
    "certificate_chain_incomplete": (cases.powered, "PUT", CERTIFICATE, own(LEAF, key=KEY)),
    "certificate_key_mismatch": (cases.powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate, key=ec_key())),
    "certificate_name_mismatch": (
        *(cases.powered, "PUT", CERTIFICATE),
        own(CA.leaf(KEY, "www.customer.test"), CA.intermediate, key=KEY),
    ),
    "certificate_expired": (
        *(cases.powered, "PUT", CERTIFICATE),
        own(CA.leaf(KEY, SHOP, days=0.5), CA.intermediate, key=KEY),
    ),
    "certificate_not_yet_valid": (
        *(cases.powered, "PUT", CERTIFICATE),
        own(CA.leaf(KEY, SHOP, from_days=2), CA.intermediate, key=KEY),
    ),
    "certificate_purpose": (cases.powered, "PUT", CERTIFICATE, own(CLIENTS, CA.intermediate, key=KEY)),
    "certificate_outdated_signature": (
        *(cases.powered, "PUT", CERTIFICATE),
        own(CA.leaf(KEY, SHOP, digest=hashes.SHA224()), CA.intermediate, key=KEY),
    ),
    "key_encrypted": (cases.powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate, key=KEY, password=b"secret")),
    "key_invalid": (cases.powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate, key=KEY) | {"privateKey": "no key"}),
    "key_unsupported": (
        *(cases.powered, "PUT", CERTIFICATE),
        own(CA.leaf(CURVE, SHOP), CA.intermediate, key=CURVE),
    ),
    "tier": (cases.basic_tier, "POST", "/checkdomain", CHECK),
}
MODAL: dict[str, Case] = {
    "connect_subscription_required": (cases.not_subscribed, "POST", FLOWS, CONFIG),
    "subdomain_required": (
        *(cases.nothing, "POST", FLOWS),
        CONFIG | {"domain": "customer.test", "forceSubdomain": True},
    ),
    "subdomain_not_supported": (
        *(cases.nothing, "POST", FLOWS),
        CONFIG | {"domain": SHOP, "supportForSubdomains": False},
    ),
    "no_records": (cases.nothing, "POST", FLOWS, ROOT_ONLY | {"domain": SHOP}),
    "flow_not_found": (cases.nothing, "GET", f"{FLOWS}/flow_4f6c1a9e2b7d0385", None),
    "plan_changed": (cases.flow_in("planned"), "POST", f"{FLOW}/apply", {"way": "manual", "digest": "0"}),
    "configuration": (
        *(cases.by_token_of_a_configuration, "POST", FLOWS),
        {"configurationId": "{configuration}", "domain": SHOP},
    ),
    "configuration_not_found": (
        *(cases.nothing, "POST", FLOWS),
        {"configurationId": "cfg_" + "4f6c1a9e2b7d0385" * 2, "domain": SHOP},
    ),
    "outside_configuration": (
        *(cases.by_browsers_token, "POST", FLOWS),
        {"configurationId": "{configuration}", "domain": SHOP, "power": False},
    ),
    "too_many_configurations": (cases.with_most_configurations, "POST", "/connect/configurations", {"config": CONFIG}),
    "domain": (
        *(cases.by_token(scope="connect", domain="customer.test"), "POST", FLOWS),
        TEXT | {"domain": "shop.other.test"},
    ),
    "link": (cases.by_token_of_another_link, "POST", FLOWS, {"share": "{share}", "domain": SHOP}),
    "link_ended": (cases.by_token_of_a_revoked_link, "POST", FLOWS, {"domain": SHOP}),
    "link_not_found": (cases.nothing, "DELETE", f"/domains/{SHOP}/status-link", None),
    **{code: (cases.ended(code), "POST", f"{FLOW}/plan", {}) for code in flow_ends.ENDS},
    **{
        f"flow_{state}": (cases.flow_in(state), "POST", f"{FLOW}/{'check' if state == 'planned' else 'apply'}", body)
        for state in State
        for body in [{} if state == "planned" else {"way": "manual", "digest": "0"}]
    },
}
ZONED: dict[str, Case] = {
    "already_active": (cases.enrolled, "POST", f"/domains/{SHOP}/prepare", {"product": "power"} | ORIGIN),
    "held": (cases.anothers, "POST", "/power", POWER),
    "leads_to_holder": (cases.anothers_by_its_dns, "POST", "/power", POWER),
    "delegation_needed": (cases.nothing, "POST", "/power", POWER | {"domain": "*.customer.test"}),
}


@pytest.fixture
async def zoned(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    """A service whose zones' own servers can be asked, with a zone for delegated challenges."""
    settings: dict[str, Any] = {"PUBLIC_URL": "https://api.frontage.test", "ACME_DNS_ZONE": "acme.frontage.test"}
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None, **settings) as service:
        service.zone.add("test", "NS", "ns.test")
        service.zone.add("ns.test", "A", "127.0.0.1")
        yield service


async def answer_as_shown(service: Service, code: str, case: Case) -> None:
    setup, method, path, body = case
    partner = await service.partner()
    ready = await setup(service, partner) or Ready()
    sent = json.dumps(body)
    for name, value in ready.ids.items():
        path, sent = path.replace(f"{{{name}}}", value), sent.replace(f"{{{name}}}", value)
    headers = partner.headers if ready.headers is None else ready.headers
    asked = json.loads(sent)
    answer = await partner.call(method, path, json=asked, headers=headers)
    check_example(code, method, path, asked, answer, {**ready.ids, "application": partner.id})


@pytest.mark.parametrize("code", [*ACCESS, *MONITOR, *ENROLMENTS, *MODAL])
async def test_the_example_of_a_code_is_answered_so(service: Service, code: str) -> None:
    await answer_as_shown(service, code, (ACCESS | MONITOR | ENROLMENTS | MODAL)[code])


@pytest.mark.parametrize("code", ZONED)
async def test_the_example_of_a_code_of_names_that_are_held_is_answered_so(zoned: Service, code: str) -> None:
    await answer_as_shown(zoned, code, ZONED[code])
