"""Routes from the replica's records, whatever these hold."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.secrets import Keyring, load_keyring
from edge.http.error_responses import BLOCKED, BLOCKED_LEGALLY, MAINTENANCE, MISCONFIGURED
from edge.replica.routes import RouteTable
from edge.routing.route import Origin, Route
from tests.captured_logs import capture_logs

DOMAIN, OTHER = "shop.example.com", "other.example.com"
URL = "https://origin.example/app"


class Replica:
    def __init__(self) -> None:
        self.records: dict[tuple[str, str], bytes] = {}
        self.reads: list[tuple[str, str]] = []

    def get_raw(self, kind: str, key: str) -> bytes | None:
        self.reads.append((kind, key))
        return self.records.get((kind, key))

    def put(self, kind: str, key: str, **content: Any) -> None:
        self.records[kind, key] = orjson.dumps(content)

    def enrol(self, domain: str, application_id: str, /, **fields: Any) -> None:
        self.put("route", f"power/{domain}", application_id=application_id, **({"application_url": URL} | fields))


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    return load_keyring(tmp_path_factory.mktemp("routes") / "master.key", create=True)


@pytest.fixture
def replica() -> Replica:
    return Replica()


@pytest.fixture
def table(replica: Replica, keyring: Keyring) -> RouteTable:
    return RouteTable(replica, keyring)


def sealed(keyring: Keyring, secret: bytes, purpose: str, application_id: str = "app") -> str:
    """As Postgres encodes it: with line feeds."""
    return base64.encodebytes(keyring.seal(secret, f"application/{application_id}/{purpose}")).decode()


def found(table: RouteTable, domain: str = DOMAIN) -> Route:
    route = table.find(domain)
    assert route is not None
    return route


def test_what_a_domain_states_of_its_responses_holds_before_its_applications(
    replica: Replica, table: RouteTable
) -> None:
    def carried(own: dict[str, Any]) -> tuple[str, dict[str, str]]:
        replica.enrol(DOMAIN, "app", response_policy=own)
        table.generation += 1
        policy = found(table).response_policy
        if policy is None:
            return "off", {}
        lines = (each.line.decode().removesuffix("\r\n").partition(": ") for each in policy.secure)
        return policy.compression, {name: value for name, _, value in lines}

    policy = {"hsts_seconds": 9, "hsts_subdomains": True, "nosniff": True, "referrer_policy": "origin"}
    replica.put(
        "application", "app", response_policy=policy | {"compression": "on", "fields": {"X-A": "a", "X-B": "b"}}
    )
    hsts, nosniff, referrer = "Strict-Transport-Security", "X-Content-Type-Options", "Referrer-Policy"
    inherited = {hsts: "max-age=9; includeSubDomains", nosniff: "nosniff", referrer: "origin", "X-A": "a", "X-B": "b"}
    assert carried({}) == ("on", inherited)
    assert carried({"hsts": {"maxAge": 5}}) == ("on", inherited | {hsts: "max-age=5"})
    assert carried({"nosniff": True, "referrerPolicy": "same-origin"}) == ("on", inherited | {referrer: "same-origin"})
    own = {"x-a": "", "X-B": "own", "X-C": "c"}
    rest = {name: value for name, value in inherited.items() if name not in ("X-A", "X-B")}
    assert carried({"fields": own, "compression": "off"}) == ("off", rest | {"X-B": "own", "X-C": "c"})
    nothing = {"hsts": "off", "nosniff": False, "referrerPolicy": "off", "fields": {"X-A": "", "X-B": ""}}
    assert carried(nothing) == ("on", {})
    assert carried(nothing | {"compression": "off"}) == ("off", {})
    replica.enrol(OTHER, "app")
    replica.enrol(DOMAIN, "app")
    table.generation += 1
    assert found(table).response_policy is found(table, OTHER).response_policy


def test_records_of_the_first_version_mean_what_they_meant(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app", id="app", application_url=None, root_path_access=["/static/"], service_auth=None)
    replica.enrol(DOMAIN, "app", domain=DOMAIN, product="power", root_path_access=None, redirect_to=None)
    assert found(table) == Route(
        DOMAIN,
        "power",
        "app",
        Origin("https", "origin.example", 443, "origin.example", verify=True),
        b"/app",
        (b"/static",),
        b"",
        b"origin.example",
    )


def test_only_the_operators_own_domain_may_lead_to_the_api(replica: Replica, keyring: Keyring) -> None:
    table = RouteTable(replica, keyring, api_domain=DOMAIN)
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app")
    replica.enrol(OTHER, "app")
    assert found(table, DOMAIN).origin.is_own_api
    assert not found(table, OTHER).origin.is_own_api


def test_fields_of_a_later_version_are_ignored(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app", colour="green", deep={"a": [1]})
    replica.enrol(DOMAIN, "app", weight=3)
    assert found(table).refusal is None


def test_options_make_the_route(replica: Replica, table: RouteTable, keyring: Keyring) -> None:
    replica.put(
        "application",
        "app",
        send_host="customer",
        origin_server_name="Inner.Example",
        origin_verify=False,
        maintenance=True,
        buffer_uploads_bytes=4096,
        service_auth=sealed(keyring, b"token", "service-auth"),
        signature_key=sealed(keyring, b"new", "signature-key"),
        previous_signature_key=sealed(keyring, b"old", "signature-key"),
        previous_signature_until=1000.5,
    )
    replica.enrol(DOMAIN, "app")
    route = found(table)
    assert route.origin == Origin("https", "origin.example", 443, "inner.example", verify=False)
    assert (route.origin_host, route.service_auth, route.refusal) == (b"", b"token", MAINTENANCE)
    assert route.buffer_uploads_bytes == 4096
    assert route.signing is not None
    assert route.signing.keys(1000) == (b"new", b"old")
    assert route.signing.keys(1001) == (b"new",)


def test_an_origin_that_was_not_set_with_full_rights_gets_no_proof_of_ours(
    replica: Replica, table: RouteTable, keyring: Keyring
) -> None:
    replica.put(
        "application",
        "app",
        application_url="https://own.example",
        service_auth=sealed(keyring, b"token", "service-auth"),
        signature_key=sealed(keyring, b"key", "signature-key"),
        metadata_fields=["plan", "other"],
    )
    for origin, is_shown in (
        ({"application_url": "https://browsers.example", "origin_vouched": False}, False),
        ({"application_url": "https://servers.example", "origin_vouched": True}, True),
        ({"application_url": "https://older.example"}, True),
        ({"application_url": None, "origin_vouched": False}, True),  # the application's own
    ):
        replica.put("route", f"power/{DOMAIN}", application_id="app", metadata={"plan": "pro"}, **origin)
        table.generation += 1
        route = found(table)
        assert (route.service_auth == b"token", route.signing is not None) == (is_shown, is_shown), origin
        assert route.metadata == (b"\r\nX-Service-Metadata-plan: pro" if is_shown else b""), origin


@pytest.mark.parametrize("envelope", ["", "!", "ü", "AAAA", base64.b64encode(bytes(range(60))).decode()])
def test_secrets_that_do_not_open_are_done_without_and_named_once(
    replica: Replica, table: RouteTable, envelope: str
) -> None:
    replica.put("application", "app", service_auth=envelope, signature_key=envelope, previous_signature_key=envelope)
    domains = [f"{n}.example.com" for n in range(5)]
    for domain in domains:
        replica.enrol(domain, "app")
    with capture_logs() as logs:
        for generation in range(3):
            table.generation = generation
            for domain in domains:
                route = found(table, domain)
                assert (route.refusal, route.service_auth, route.signing) == (None, b"", None)
    assert sorted(entry["purpose"] for entry in logs) == ["service-auth", "signature-key"]


def test_an_envelope_of_another_application_does_not_open(
    replica: Replica, table: RouteTable, keyring: Keyring
) -> None:
    replica.put("application", "app", service_auth=sealed(keyring, b"token", "service-auth", "another"))
    replica.enrol(DOMAIN, "app")
    with capture_logs():
        assert found(table).service_auth == b""


def test_routes_stay_the_very_object_until_a_record_changes(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app")
    first = found(table)
    table.generation += 1
    assert found(table) is first
    replica.put("application", "app", maintenance=True)
    assert found(table) is first, "unasked until the generation moves"
    table.generation += 1
    assert found(table).refusal is MAINTENANCE
    replica.enrol(DOMAIN, "app", application_url="http://new.example")
    table.generation += 1
    assert found(table).origin.host == "new.example"
    del replica.records["route", f"power/{DOMAIN}"]
    table.generation += 1
    assert table.find(DOMAIN) is None


def test_a_broken_record_refuses_for_its_domain_only_is_logged_once_and_heals(
    replica: Replica, table: RouteTable
) -> None:
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app", application_url="ftp://no")
    replica.enrol(OTHER, "app")
    with capture_logs() as logs:
        for _ in range(3):
            table.generation += 1
            for _ in range(2):
                assert found(table).refusal is MISCONFIGURED
                assert found(table, OTHER).refusal is None
    assert [(entry["event"], entry["domain"]) for entry in logs] == [("route unusable", DOMAIN)]
    replica.enrol(DOMAIN, "app")
    table.generation += 1
    assert found(table).refusal is None


def test_a_broken_application_refuses_for_its_domains_and_heals(replica: Replica, table: RouteTable) -> None:
    replica.records["application", "app"] = b"{"
    replica.put("application", "fine")
    replica.enrol(DOMAIN, "app")
    replica.enrol(OTHER, "fine")
    with capture_logs():
        assert found(table).refusal is MISCONFIGURED
        assert found(table, OTHER).refusal is None
    replica.put("application", "app")
    table.generation += 1
    assert found(table).refusal is None


def test_powers_route_wins_and_secure_has_no_path(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app", application_url=URL)
    replica.put("route", f"secure/{DOMAIN}", application_id="app")
    assert (found(table).product, found(table).base_path) == ("secure", b"")
    replica.enrol(DOMAIN, "app")
    table.generation += 1
    assert found(table).product == "power"


def test_an_application_that_is_not_there_is_no_route(replica: Replica, table: RouteTable) -> None:
    replica.enrol(DOMAIN, "app")
    assert table.find(DOMAIN) is None


def test_error_pages_are_the_applications_and_broken_ones_are_not_shown(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app")
    assert table.error_page(DOMAIN) is None
    replica.put("error_page", "app", application_id="app", html="<p>ours")
    assert table.error_page(DOMAIN) == "<p>ours"
    assert table.error_page(OTHER) is None
    replica.records["error_page", "app"] = b'{"html": 1}'
    assert table.error_page(DOMAIN) is None


# Any content at all -----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
URLS = st.sampled_from([URL, "http://[::1]:99999", "https://", "http://o.example/ü", "http://a_b/", "x", ""])
PATHS = st.lists(st.text(max_size=5), max_size=3)
ROUTES = st.fixed_dictionaries(
    {},
    optional={
        "application_id": st.sampled_from(["app", "nobody", "", "x" * 600, "ü"]) | JSON,
        "application_url": URLS | JSON,
        "root_path_access": PATHS | JSON,
        "product": JSON,
        "response_policy": st.fixed_dictionaries(
            {}, optional={"hsts": st.sampled_from(["off", {"maxAge": 1}]) | JSON, "nosniff": JSON, "fields": JSON}
        )
        | JSON,
    },
)
APPLICATIONS = st.fixed_dictionaries(
    {},
    optional={
        "application_url": URLS | JSON,
        "root_path_access": PATHS | JSON,
        "send_host": st.sampled_from(["customer", "both"]) | JSON,
        "origin_server_name": st.sampled_from(["o.example", "a\r\nb", "", "127.0.0.1"]) | JSON,
        "origin_verify": JSON,
        "maintenance": JSON,
        "http2": JSON,
        "minimum_tls": JSON,
        "buffer_uploads_bytes": JSON,
        **dict.fromkeys(("service_auth", "signature_key", "previous_signature_key"), JSON),
        "previous_signature_until": JSON,
    },
)


def content_of(records: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return (records | JSON).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20)


@settings(max_examples=150)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["route", "application", "error_page"]), st.data()), min_size=1, max_size=4
    )
)
def test_no_content_takes_a_domain_down_but_its_own(keyring: Keyring, steps: list[tuple[str, st.DataObject]]) -> None:
    replica = Replica()
    table = RouteTable(replica, keyring)
    for id_ in ("app", "fine"):
        replica.put("application", id_)
    replica.enrol(DOMAIN, "app")
    replica.enrol(OTHER, "fine")
    untouched = found(table, OTHER)
    kinds = {
        "route": (f"power/{DOMAIN}", ROUTES),
        "application": ("app", APPLICATIONS),
        "error_page": ("app", st.fixed_dictionaries({}, optional={"html": JSON})),
    }
    for kind, data in steps:
        key, records = kinds[kind]
        replica.records[kind, key] = data.draw(content_of(records))
        table.generation += 1
        with capture_logs():
            route = table.find(DOMAIN)
            table.error_page(DOMAIN)
        with capture_logs() as logs:
            assert table.find(DOMAIN) is route
            table.generation += 1
            assert table.find(DOMAIN) is route, "unusable records are remembered too"
            assert found(table, OTHER) is untouched
        assert not logs
        assert all(len(key.encode()) < 400 for _, key in replica.reads), "LMDB's keys are short"
        if route is not None and route.refusal is None:
            head = b"".join((route.origin.authority, route.base_path, route.origin_host))
            assert b"\r" not in head
            assert b"\n" not in head


def test_the_table_forgets_rather_than_grow(replica: Replica, keyring: Keyring) -> None:
    table = RouteTable(replica, keyring, most=2)
    replica.put("application", "app")
    for n in range(4):
        replica.enrol(f"{n}.example.com", "app")
        found(table, f"{n}.example.com")
    replica.reads.clear()
    found(table, "3.example.com")
    assert not replica.reads
    found(table, "0.example.com")
    assert replica.reads


def test_a_secret_that_did_not_open_is_opened_once_the_key_file_is_another(replica: Replica, tmp_path: Path) -> None:
    key_file = tmp_path / "master.key"
    sealing = load_keyring(key_file, create=True)
    replica.put("application", "app", service_auth=sealed(sealing, b"token", "service-auth"))
    replica.enrol(DOMAIN, "app")
    key_file.rename(tmp_path / "right.key")
    keys = load_keyring(key_file, create=True)
    table = RouteTable(replica, keys)
    assert found(table).service_auth == b""
    assert table.lacks_secrets
    (tmp_path / "right.key").rename(key_file)
    table.generation += keys.follow_file()
    assert found(table).service_auth == b"token"
    assert not table.lacks_secrets


def test_a_policy_answers_for_its_domain_and_one_of_the_application_for_all_of_them(
    replica: Replica, table: RouteTable
) -> None:
    replica.put("application", "app", maintenance=True)
    for domain in (DOMAIN, OTHER):
        replica.enrol(domain, "app")
    assert found(table).refusal is MAINTENANCE
    replica.put("policy", f"domain/{DOMAIN}", answer={"status": 451, "reason": "A court said so."})
    table.generation += 1
    assert found(table).refusal == BLOCKED_LEGALLY._replace(message=f"{BLOCKED_LEGALLY.message} A court said so.")
    assert found(table, OTHER).refusal is MAINTENANCE
    replica.put("policy", "application/app", answer={"status": 403, "reason": "Unpaid."}, later={"field": 1})
    table.generation += 1
    assert found(table).refusal is not None
    assert [each.refusal.status for each in (found(table), found(table, OTHER)) if each.refusal] == [451, 403]
    replica.put("policy", f"domain/{DOMAIN}", other="what a later version says")
    table.generation += 1
    assert found(table).refusal == BLOCKED._replace(message=f"{BLOCKED.message} Unpaid.")
    replica.records.clear()
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app")
    table.generation += 1
    assert found(table).refusal is None


def test_a_policy_that_cannot_be_read_lets_nothing_through(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app")
    replica.enrol(DOMAIN, "app")
    replica.put("policy", f"domain/{DOMAIN}", answer={"status": 200, "reason": ""})
    with capture_logs():
        assert found(table).refusal is MISCONFIGURED


WILD = "*.customer.example"


def test_wildcard_serves_names_one_label_beneath_that_have_no_route_of_their_own(
    replica: Replica, table: RouteTable
) -> None:
    replica.put("application", "app", id="app")
    replica.put("application", "other", id="other")
    replica.enrol(WILD, "app")
    replica.enrol("b.customer.example", "other")
    replica.enrol("*.b.customer.example", "other")
    first = found(table, "a.customer.example")
    assert (first.domain, first.application_id) == (WILD, "app")
    assert found(table, "_x.customer.example") is found(table, "a.customer.example") is first
    assert found(table, "b.customer.example").application_id == "other"
    assert found(table, "c.b.customer.example").domain == "*.b.customer.example"
    for name in ("customer.example", "x.a.customer.example", "a..customer.example", "example", "", "."):
        assert table.find(name) is None

    replica.enrol("a.customer.example", "other")
    table.generation += 1
    assert found(table, "a.customer.example").application_id == "other"
    replica.records.pop(("route", f"power/{WILD}"))
    table.generation += 1
    assert table.find("c.customer.example") is None


def test_block_of_a_name_beneath_a_wildcard_is_of_that_name_alone(replica: Replica, table: RouteTable) -> None:
    replica.put("application", "app", id="app")
    replica.enrol(WILD, "app")
    replica.put("policy", "domain/a.customer.example", answer={"status": 403, "reason": "phishing"})
    assert found(table, "a.customer.example").refusal is not None
    assert found(table, "b.customer.example").refusal is None
    replica.put("policy", f"domain/{WILD}", answer={"status": 451, "reason": "court"})
    table.generation += 1
    assert [found(table, f"{name}.customer.example").refusal is None for name in "ab"] == [False, False]


def test_names_beneath_wildcards_are_remembered_apart_and_bounded(replica: Replica, keyring: Keyring) -> None:
    table = RouteTable(replica, keyring, most=4)
    replica.put("application", "app", id="app")
    replica.enrol(DOMAIN, "app")
    replica.enrol(WILD, "app")
    own = found(table)
    for number in range(20):
        assert found(table, f"{number}.customer.example").domain == WILD
    replica.reads.clear()
    assert found(table) is own
    assert found(table, "19.customer.example").domain == WILD
    assert replica.reads == [], "names beneath a wildcard push out no route of another"
