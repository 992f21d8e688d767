"""Domain Connect's pure parts: what providers state, which template expresses what, and the signed apply URL."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from api.connect.returning import Returned, read_return
from api.connect.signing import apply_url, find_publication_fault, new_private_key, public_key_records
from common.connect.domain_connect.discovery import Closed, Discovered
from common.connect.domain_connect.offer import Offer, decide_offer
from common.connect.domain_connect.provider_settings import (
    InvalidSettings,
    ProviderSettings,
    parse_settings,
    settings_url,
    template_url,
)
from common.connect.domain_connect.templates import SERVICES, fill_templates, for_installation
from common.connect.plan import make_plan
from common.dns import Answer, Outcome
from common.domain_check.conflicts import find_conflicts
from common.domain_check.zone_view import HostView, ZoneView
from common.flows.requested import RecordPurpose, Requested
from common.ip_addresses import IPAddress
from common.records import Record

APEX = "customer.example"
SETTINGS = {
    "providerId": "lab.example",
    "providerName": "Lab",
    "urlSyncUX": "https://lab.example/connect/",
    "urlAPI": "https://api.lab.example",
    "width": 620,
    "height": 100_000,
    "nameServers": ["NS1.lab.example."],
    "urlControlPanel": "https://lab.example/?domain=%domain%",
    "somethingNew": {"a": 1},
}


def nothing_private(_: IPAddress) -> bool:
    return False


def loopback(address: IPAddress) -> bool:
    return address in ip_network("127.0.0.0/8")


def parsed(**changes: Any) -> ProviderSettings:
    given = {name: value for name, value in (SETTINGS | changes).items() if value is not None}
    return parse_settings(json.dumps(given).encode(), APEX, nothing_private)


# What providers state ----------------------------------------------------------------------------------------------


def test_the_record_leads_to_the_settings() -> None:
    assert settings_url("dc.lab.example", APEX, loopback) == f"https://dc.lab.example/v2/{APEX}/settings"
    assert settings_url("lab.example/a/b/", APEX, loopback) == f"https://lab.example/a/b/v2/{APEX}/settings"


@pytest.mark.parametrize(
    "record",
    [
        "",
        "http://lab.example",
        "https://lab.example",
        "lab.example/?a=b",
        "lab.example/#a",
        "user@lab.example",
        "lab example",
        "lab.example/../x",
        "lab.example:port",
        "[::1",
        "/path",
        "a" * 300,
    ],
)
def test_a_record_of_another_form_is_refused(record: str) -> None:
    with pytest.raises(InvalidSettings):
        settings_url(record, APEX, nothing_private)


def test_plain_http_is_for_addresses_alone_that_the_operator_allows() -> None:
    assert settings_url("127.0.0.1:8080", APEX, loopback).startswith("http://127.0.0.1:8080/")
    assert settings_url("127.0.0.1:8080", APEX, nothing_private).startswith("https://")
    assert settings_url("localhost:8080", APEX, loopback).startswith("https://")
    with pytest.raises(InvalidSettings):
        parsed(urlAPI="http://127.0.0.1/")


def test_settings_are_read_and_unknown_properties_ignored() -> None:
    settings = parsed()
    assert settings == ProviderSettings(
        "lab.example",
        "Lab",
        "https://api.lab.example",
        "https://lab.example/connect",
        620,
        2000,
        f"https://lab.example/?domain={APEX}",
        ("ns1.lab.example",),
    )
    assert parsed(providerDisplayName="Brand").name == "Brand"
    assert (parsed(urlSyncUX=None).sync_url, parsed(width=None).width) == (None, 750)
    assert template_url(settings, "frontage.example", "root") == (
        "https://api.lab.example/v2/domainTemplates/providers/frontage.example/services/root"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"providerId": None},
        {"providerId": "a b"},
        {"providerName": None},
        {"providerName": "a\x00b"},
        {"urlAPI": None},
        {"urlAPI": "ftp://lab.example"},
        {"urlAPI": "https://user@lab.example"},
        {"urlSyncUX": "http://lab.example"},
        {"urlSyncUX": "javascript:alert(1)"},
        {"urlSyncUX": "https://lab.example/?a=b"},
        {"urlSyncUX": ["https://lab.example"]},
        {"width": "wide"},
        {"height": True},
        {"nameServers": "ns1.lab.example"},
    ],
)
def test_settings_of_another_form_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        parsed(**changes)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"\xff"])
def test_settings_that_are_no_object_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidSettings):
        parse_settings(body, APEX, nothing_private)


def test_a_control_panel_that_is_no_page_is_left_out() -> None:
    assert parsed(urlControlPanel="javascript:alert(1)").control_panel_url is None


# Templates ---------------------------------------------------------------------------------------------------------

_FIELDS = {
    "A": {"host", "pointsTo", "ttl"},
    "AAAA": {"host", "pointsTo", "ttl"},
    "CNAME": {"host", "pointsTo", "ttl"},
    "MX": {"host", "pointsTo", "ttl", "priority"},
    "TXT": {"host", "data", "ttl", "txtConflictMatchingMode", "txtConflictMatchingPrefix"},
}
_OPTIONAL = {"txtConflictMatchingMode", "txtConflictMatchingPrefix"}
_PROPERTIES = {
    "providerId",
    "providerName",
    "serviceId",
    "serviceName",
    "version",
    "description",
    "variableDescription",
    "syncPubKeyDomain",
    "syncRedirectDomain",
    "multiInstance",
    "hostRequired",
    "records",
}
_RESERVED = {"domain", "host", "fqdn", "state", "sig", "key", "groupId", "redirect_uri", "providerName", "serviceName"}


@pytest.mark.parametrize("service", SERVICES)
def test_templates_keep_the_drafts_rules(service: str) -> None:
    """draft-ietf-dconn-domainconnect: Template Definition and Template Record."""
    template = for_installation(service, "partner.example", "Partner", "api.partner.example")
    assert template.keys() <= _PROPERTIES
    assert (template["providerId"], template["serviceId"]) == ("partner.example", service)
    assert (template["syncPubKeyDomain"], template["syncRedirectDomain"]) == ("partner.example", "api.partner.example")
    assert template["version"] >= 1
    variables: list[str] = []
    for record in template["records"]:
        wanted = _FIELDS[record["type"]]
        given = record.keys() - {"type", "groupId"}
        assert wanted - _OPTIONAL <= given <= wanted, record
        assert record["type"] != "CNAME" or record["host"] != "@" or template["hostRequired"]
        assert isinstance(record["ttl"], int)
        assert isinstance(record.get("priority", 0), int)
        fields = (record["host"], record.get("pointsTo") or record["data"])
        variables += [field[1:-1] for field in fields if field != "@"]
        assert all(
            field == "@" or field.count("%") == 2 == field.startswith("%") + field.endswith("%") for field in fields
        )
    assert len(variables) == len(set(variables))
    assert not _RESERVED & set(variables)
    groups = [record["groupId"] for record in template["records"] if "groupId" in record]
    assert len(groups) == len(set(groups))


def test_only_our_own_id_stands_in_the_packaged_templates() -> None:
    folder = resources.files("common.connect.domain_connect").joinpath("templates")
    assert {each.name for each in folder.iterdir() if each.name.endswith(".json")} == {
        f"{each}.json" for each in SERVICES
    }


def record(kind: str, host: str, value: str, *, priority: str | None = None, power: bool = False) -> Requested:
    return Requested(
        Record(kind, host, value, 300, priority),  # type: ignore[arg-type]
        RecordPurpose(product="power") if power else RecordPurpose(),
    )


CNAME = record("CNAME", "shop", "Target.partner.example.")
ROOT = (record("A", "@", "192.0.2.1", power=True), record("A", "@", "192.0.2.2", power=True))


@pytest.mark.parametrize(
    ("requested", "service", "host", "variables", "groups"),
    [
        ((CNAME,), "subdomain", "shop", {"target": "target.partner.example"}, ()),
        ((CNAME, CNAME), "subdomain", "shop", {"target": "target.partner.example"}, ()),
        (ROOT, "root", "", {"address1": "192.0.2.1", "address2": "192.0.2.2"}, ()),
        (ROOT[:1], "root", "", {"address1": "192.0.2.1"}, ("first",)),
        (
            (CNAME, ROOT[0]),
            "records",
            "shop",
            {
                "cname1-host": "@",
                "cname1-target": "target.partner.example",
                "a1-host": f"{APEX}.",
                "a1-address": "192.0.2.1",
            },
            ("cname1", "a1"),
        ),
        (
            (record("CNAME", "www.shop", "t.example"), record("TXT", "_x.shop", 'say "hi"')),
            "records",
            "shop",
            {"cname1-host": "www", "cname1-target": "t.example", "txt1-host": "_x", "txt1-text": '"say \\034hi\\034"'},
            ("cname1", "txt1"),
        ),
        (
            (record("MX", "@", "mail.example", priority="20"), record("TXT", "@", "v=spf1 include:a.example -all")),
            "records",
            "",
            {
                "mx2-host": "@",
                "mx2-target": "mail.example",
                "spf-host": "@",
                "spf-text": "v=spf1 include:a.example -all",
            },
            ("mx2", "spf"),
        ),
    ],
)
def test_the_template_with_the_fewest_variables_expresses_the_records(
    requested: Sequence[Requested], service: str, host: str, variables: dict[str, str], groups: tuple[str, ...]
) -> None:
    filled = fill_templates(requested, APEX)[0]
    assert (filled.service, filled.host, filled.groups) == (service, host, groups)
    assert filled.variables == variables


@pytest.mark.parametrize(
    "requested",
    [
        (),
        (record("CAA", "@", '0 issue "ca.example"'),),
        (record("NS", "sub", "ns.example"),),
        (record("MX", "@", "mail.example", priority="15"),),
        tuple(record("TXT", "@", f"text {number}") for number in range(5)),
    ],
)
def test_what_no_template_expresses_is_not_filled(requested: Sequence[Requested]) -> None:
    assert fill_templates(requested, APEX) == []


# The offer ---------------------------------------------------------------------------------------------------------


def view(**hosts: dict[str, Sequence[str]]) -> ZoneView:
    """Records by host (``root`` for the apex) and type; other types of these hosts are not there."""
    found = {}
    for host, records in hosts.items():
        name = APEX if host == "root" else f"{host}.{APEX}"
        kinds = ("A", "AAAA", "CNAME", "TXT", "MX", "CAA")
        found[name] = HostView(
            name,
            {kind: _answer(records.get(kind, ())) for kind in kinds},  # type: ignore[misc]
        )
    return ZoneView(APEX, _answer(["ns1.lab.example"]), _answer(["ns1.lab.example"]), _answer(()), found)


def _answer(values: Sequence[str]) -> Answer:
    return Answer(Outcome.RECORDS if values else Outcome.NO_DATA, tuple(values))


def offered(requested: Sequence[Requested], zone: ZoneView, *services: str, **settings: Any) -> Offer | Closed | None:
    plan = make_plan(requested, zone, find_conflicts([each.record for each in requested], zone))
    discovered = Discovered(replace(parsed(), **settings), frozenset(services or SERVICES))
    return decide_offer(discovered, requested, plan, zone, lambda each: "unknown" not in each.record.value)


def test_domain_connect_is_open_where_the_template_does_the_plan() -> None:
    for zone in (view(shop={}), view(shop={"A": ["192.0.2.9"], "AAAA": ["2001:db8::1"]})):
        offer = offered([CNAME], zone)
        assert isinstance(offer, Offer)
        assert offer.filled.service == "subdomain"
    both = view(root={"A": ["192.0.2.9", "192.0.2.1"], "AAAA": ["2001:db8::1"], "TXT": ["x"]})
    assert isinstance(offered(ROOT, both), Offer)


@pytest.mark.parametrize(
    ("requested", "zone", "code", "given"),
    [
        ([CNAME], view(shop={}), "template_not_supported", {"services": ("root",)}),
        ([record("CNAME", "shop", "unknown.example")], view(shop={}), "not_vouched", {}),
        ([CNAME], view(shop={}), "other_name_servers", {"name_servers": ("ns1.other.example",)}),
        ([record("CAA", "@", '0 issue "ca.example"')], view(root={}), "not_expressible", {}),
        ([record("A", "@", "192.0.2.1")], view(root={"AAAA": ["2001:db8::1"]}), "plan_not_expressible", {}),
    ],
)
def test_domain_connect_is_closed_with_a_reason(
    requested: list[Requested], zone: ZoneView, code: str, given: dict[str, Any]
) -> None:
    services = given.pop("services", ())
    closed = offered(requested, zone, *services, **given)
    assert isinstance(closed, Closed)
    assert (closed.code, closed.provider) == (code, "Lab")
    assert closed.words.endswith(".")


def test_of_a_provider_without_domain_connect_nothing_is_stated() -> None:
    plan = make_plan([CNAME], view(shop={}), ())
    assert decide_offer(None, [CNAME], plan, view(shop={}), lambda _: True) is None


# The apply URL -----------------------------------------------------------------------------------------------------


def test_the_signature_covers_the_query_as_it_stands_and_the_records_verify_it() -> None:
    private_key = new_private_key()
    records = public_key_records(private_key)
    assert all(len(each) <= 255 for each in records)
    fields = [dict(pair.split("=", 1) for pair in each.split(",")) for each in records]
    assert [each["p"] for each in fields] == [str(number) for number in range(1, len(fields) + 1)]
    assert {each["a"] for each in fields} == {"RS256"}
    public = load_der_public_key(base64.b64decode("".join(each["d"] for each in fields)))
    assert isinstance(public, RSAPublicKey)
    filled = fill_templates([CNAME], APEX)[0]

    url = apply_url(
        parsed(),
        "partner.example",
        filled,
        APEX,
        redirect_uri="https://api.partner.example/connect/return/flw_1",
        state="a+b c",
        key_label="_dck1",
        private_key=private_key,
    )

    parts = urlsplit(url)
    path = "/connect/v2/domainTemplates/providers/partner.example/services/subdomain/apply"
    assert (parts.netloc, parts.path) == ("lab.example", path)
    signed, _, rest = parts.query.partition("&sig=")
    signature, _, label = rest.partition("&key=")
    assert label == "_dck1"
    names = [pair.partition("=")[0] for pair in signed.split("&")]
    assert names == sorted(names) == ["domain", "host", "redirect_uri", "state", "target"]
    assert dict(parse_qsl(signed))["state"] == "a+b c"
    assert "state=a%2Bb%20c" in signed
    octets = base64.b64decode(unquote(signature))
    public.verify(octets, signed.encode(), PKCS1v15(), SHA256())
    with pytest.raises(InvalidSignature):
        public.verify(octets, signed.replace("host=shop", "host=other").encode(), PKCS1v15(), SHA256())


# Coming back -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (Answer(Outcome.RECORDS, ("p=2", "p=1")), None),
        (Answer(Outcome.TIMEOUT), "could not be asked (timeout)"),
        (Answer(Outcome.NO_NAME), "2 of its 2 TXT records"),
        (Answer(Outcome.RECORDS, ("p=1", "other")), "1 of its 2 TXT records"),
        (Answer(Outcome.RECORDS, ("p=1", "p=2", "p=3")), "not the key's"),
        (Answer(Outcome.RECORDS, ("p=1", "p=2"), is_disputed=True), "not all of its name servers"),
    ],
)
def test_a_key_is_published_once_all_servers_have_its_records_and_no_others(found: Answer, fault: str | None) -> None:
    stated = find_publication_fault(("p=1", "p=2"), found)
    assert stated is None if fault is None else fault in (stated or "")


def test_what_a_browser_brings_back_is_bounded_text() -> None:
    assert read_return({"state": "x"}) == Returned("done")
    refused = read_return({"error": "access_denied", "error_description": "user_cancel\n<b>no</b>" + "x" * 999})
    assert (refused.outcome, refused.error) == ("refused", "access_denied")
    assert refused.description is not None
    assert (refused.description[:21], len(refused.description)) == ("user_cancel <b>no</b>", 200)
    assert read_return({"error": "<script>"}) == Returned("error", "other")
