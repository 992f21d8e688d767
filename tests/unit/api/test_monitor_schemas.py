"""Monitor's border: every input is either exactly what the API documents, or refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api.answers.monitor import last_check
from api.errors import INVALID_BODY, Refused
from api.schemas import monitor_bodies as schemas
from api.schemas.bodies import parse_body
from common.db.batches import InvalidItem, Unwatch, Watch
from common.db.monitored_domains import LastCheck, MonitoredKey
from common.names import parse_domain
from common.records import RECORD_TYPES, as_json, parse_record

scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(RECORD_TYPES) | st.sampled_from(["a", "HTTPS", "", "ANY"]) | anything
hosts = st.sampled_from(["@", "www", "_dmarc", "*.a", "", " ", "a..b", "\0"]) | anything
values = st.sampled_from(["192.0.2.1", "apps.test", "x" * 300, "", "\t", "a\0"]) | anything
ttls = st.sampled_from([1, 300, 2**31 - 1, 0, -1, 2**31, True, 1.0, "60"]) | anything
priorities = st.sampled_from([None, "10", "0", "65535", "65536", "-1", 10, ""]) | anything
records = st.fixed_dictionaries(
    {"type": kinds, "host": hosts, "value": values, "ttl": ttls}, optional={"priority": priorities, "extra": anything}
)
domains = st.sampled_from(["a.test", "A.Test.", "bücher.example", "www.a.test", "test", "", "a b.test"]) | anything
subdomains = st.sampled_from([None, "www", "_a.B", "", "a..b", "*", "ü"]) | anything
GOOD = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}
MX = {"type": "MX", "host": "@", "value": "mail.test", "ttl": 300}
TEXT = {"type": "TXT", "host": "@", "value": "x" * 40_000, "ttl": 300}
bodies = st.fixed_dictionaries(
    {"domain": domains, "dnsRecords": st.lists(records | anything, max_size=3) | anything},
    optional={"subdomain": subdomains, "userId": anything, "jobId": anything, "userEmail": anything, "x": anything},
)


def is_record(given: Any) -> bool:
    """The rules of a DNS record, stated independently of the code."""
    match given:
        case {"type": kind, "host": str(host), "value": str(value), "ttl": int(ttl)}:
            priority = given.get("priority")
            return (
                isinstance(kind, str)
                and kind in RECORD_TYPES
                and bool(host.strip() and value.strip())
                and not isinstance(ttl, bool)
                and ttl > 0
                and (priority is None or (kind == "MX" and isinstance(priority, str) and priority.isdecimal()))
            )
        case _:
            return False


def parsed_or_refused(body: dict[str, Any]) -> schemas.WatchBody | Refused:
    try:
        return parse_body(orjson.dumps(body), schemas.WatchBody, INVALID_BODY)
    except Refused as refused:
        return refused


@given(bodies)
def test_what_is_taken_is_what_the_specification_allows(body: dict[str, Any]) -> None:
    parsed = parsed_or_refused(body)
    if isinstance(parsed, Refused):
        assert parsed.refusal.status == 400
        assert parsed.refusal.message.startswith("Invalid '")
        return
    assert isinstance(body["domain"], str)
    assert parse_domain(body["domain"]).is_root
    assert parsed.domain == parse_domain(body["domain"]).text
    assert body["dnsRecords"]
    assert all(map(is_record, body["dnsRecords"]))
    assert [record.host for record in parsed.records] == [record["host"] for record in body["dnsRecords"]]
    for sent, kept in (("userId", parsed.user_id), ("jobId", parsed.job_id), ("userEmail", parsed.user_email)):
        assert kept == body.get(sent)
    if parsed.subdomain is not None:
        assert parsed.subdomain == parsed.subdomain.lower()
        assert "" not in parsed.subdomain.split(".")


@given(bodies)
def test_an_entry_of_a_batch_is_taken_exactly_when_the_single_request_is(body: dict[str, Any]) -> None:
    entry = orjson.loads(orjson.dumps(body))
    single = parsed_or_refused(body)
    if isinstance(single, Refused):
        failed = schemas.parse_watch(entry)
        assert isinstance(failed, InvalidItem)
        assert failed.reason
        return
    assert schemas.parse_watch(entry) == Watch(single.domain, single.subdomain, tuple(single.records), single.labels)


@given(anything)
def test_an_entry_may_be_anything(entry: Any) -> None:
    assert isinstance(schemas.parse_watch(entry), Watch | InvalidItem)
    assert isinstance(schemas.parse_unwatch(entry), Unwatch | InvalidItem)


@given(records)
def test_a_record_that_is_kept_is_read_back_the_same(given_record: dict[str, Any]) -> None:
    try:
        record = parse_record(given_record)
    except Exception:  # what is refused is the other tests' business
        return
    assert parse_record(orjson.loads(orjson.dumps(as_json(record)))) == record


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"domain": "www.a.test", "dnsRecords": []}, "not an apex: send a.test as the domain and www as the subdomain"),
        ({"domain": "a.test", "subdomain": "w.A.test"}, "not relative to the domain: send w"),
        ({"domain": "a.test", "subdomain": "a.test"}, "the domain itself has none"),
        ({"domain": "a.test", "dnsRecords": []}, "at least 1 item"),
        ({"domain": "a.test", "dnsRecords": [{"type": "A"}]}, "dnsRecords[0]: host must be text and not empty"),
        ({"domain": "a.test"}, "Field required"),
        ({"domain": "a.test", "dnsRecords": [GOOD, GOOD | {"value": "x"}]}, "dnsRecords[1]: value must be an IPv4"),
        (
            {"domain": "a.test", "dnsRecords": [GOOD | {"host": "www.a.test"}]},
            "dnsRecords[0]: host is relative to a.test",
        ),
        (
            {"domain": "a.test", "dnsRecords": [GOOD | {"priority": 10}]},
            "dnsRecords[0]: only MX records have a priority",
        ),
        ({"domain": "a.test", "dnsRecords": [MX | {"priority": 10}]}, "dnsRecords[0]: priority must be text"),
        ({"domain": "a.test", "dnsRecords": [TEXT] * 2}, "at most 65536 octets of hosts and values under one name"),
        ({"domain": "a.test", "dnsRecords": [GOOD] * 501}, "at most 500 items"),
    ],
)
def test_a_refusal_says_what_to_do(body: dict[str, Any], hint: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_body(orjson.dumps(body), schemas.WatchBody, INVALID_BODY)
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (7, "an entry is a JSON object"),
        ({"domain": "www.a.test"}, "domain: not an apex: send a.test as the domain and www as the subdomain"),
        ({"domain": "a.test"}, "dnsRecords: Field required"),
        ({"domain": "a.test", "dnsRecords": [GOOD | {"value": "x"}]}, "dnsRecords[0]: value must be an IPv4 address"),
    ],
)
def test_the_reason_of_a_failed_entry_names_the_field_and_its_place(entry: Any, reason: str) -> None:
    failed = schemas.parse_watch(entry)
    assert isinstance(failed, InvalidItem)
    assert failed.reason.startswith(reason)


def test_records_that_were_taken_before_can_be_removed() -> None:
    body = orjson.dumps({"dnsRecords": [GOOD | {"value": "not-an-ip"}]})
    assert parse_body(body, schemas.RemovedRecordsBody, INVALID_BODY).records[0].value == "not-an-ip"
    with pytest.raises(Refused, match="dnsRecords"):
        parse_body(body, schemas.RecordsBody, INVALID_BODY, context="a.test")


def test_nothing_after_the_first_refused_record_is_looked_at() -> None:
    with pytest.raises(ValidationError) as refused:
        schemas.WatchBody.model_validate({"domain": "a.test", "dnsRecords": [{}] * 500})
    assert refused.value.error_count() == 1


def test_private_addresses_that_only_the_operators_resolver_knows_are_not_told() -> None:
    said = {"at": "", "role": "resolver", "name": "db.internal", "type": "A", "outcome": "records"}
    private = ["10.1.2.3", "fd00::1", "::ffff:10.1.2.3", "64:ff9b::a01:203", "64:ff9b:1::a01:203", "2002:a01:203::1"]
    told = ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "text"]
    values = private + told
    servers = ("10.0.0.53:53", "9.9.9.9:53", "[::ffff:10.0.0.54]:53")
    evidence = [{**said, "server": server, "values": values} for server in servers]

    shown = last_check(MonitoredKey("app", "apps.test"), LastCheck("missing", None, evidence))["evidence"]

    assert shown is not None
    assert shown[0]["values"] == ["a private address"] * len(private) + told
    assert shown[1]["values"] == values, "everybody can ask there"
    assert [each["server"] for each in shown] == ["resolver 1", "9.9.9.9:53", "resolver 2"]
