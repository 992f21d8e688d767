"""Records: what is taken, what is refused, and that two spellings are equal exactly when DNS says so."""

import re
from typing import Any

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import (
    RECORD_TYPES,
    InvalidRecord,
    Record,
    RecordType,
    as_json,
    identity,
    matches,
    normal_name,
    normal_value,
    owner_name,
    parse_record,
    text_of,
)

A_RECORD = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}


def record(kind: RecordType, value: str, *, host: str = "www", priority: str | None = None) -> Record:
    return Record(kind, host, value, 300, priority)


# Parsing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ü." * 20_000, "ü。" * 43, "ü" * 1025, "\\." * 30_000])
def test_what_is_too_long_for_a_name_costs_no_time(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are made A-labels one by one, before anybody sees that they are too many: a second for the longest."""
    monkeypatch.setattr("dns.name.from_text", lambda *_: pytest.fail("it was worked on"))
    assert normal_name(text) == text.lower().removesuffix(".")


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_every_type_is_taken_and_given_back_as_it_was(kind: str) -> None:
    given = A_RECORD | {"type": kind}

    assert as_json(parse_record(given | {"monitor": True, "priority": None})) == given


def test_an_mx_record_keeps_its_priority() -> None:
    given = {"type": "MX", "host": "@", "value": "mail.example.com", "ttl": 300, "priority": "10"}

    assert as_json(parse_record(given)) == given


@pytest.mark.parametrize(
    "change",
    [
        *({"type": kind} for kind in ("a", "SPF", "ANY", "", None, 1, ["A"], {"A": 1})),
        *({"host": host} for host in ("", "  ", None, 1, "a..b", "x" * 64, "a b", "a\nb", "a\0", "\ud800")),
        *({"value": value} for value in ("", " \t", None, 1, "a\0b", "\udfff", "x" * 65_536)),
        *({"ttl": ttl} for ttl in (0, -1, None, "300", 300.0, True, 2**31)),
        *({"type": "MX", "priority": priority} for priority in (10, "", "x", "65536", "-1", " 1", "٣")),
        {"priority": "10"},
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord):
        parse_record(A_RECORD | change)


@pytest.mark.parametrize("given", [None, [], "A", 1])
def test_what_is_no_object_is_refused(given: object) -> None:
    with pytest.raises(InvalidRecord):
        parse_record(given)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(RECORD_TYPES), "host": st.text(), "value": st.text(), "ttl": st.integers()},
        optional={"priority": st.text() | st.integers()},
    )
)
def test_anything_is_either_a_record_or_refused(given: dict[str, Any]) -> None:
    try:
        parsed = parse_record(given)
    except InvalidRecord:
        return
    assert parse_record(as_json(parsed)) == parsed
    identity(parsed)
    owner_name(parsed, "example.com")


# Comparing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("A", "192.0.2.1", " 192.0.2.1 "),
        ("AAAA", "2001:DB8:0:0::1", "2001:db8::1"),
        ("AAAA", "::ffff:192.0.2.1", "::ffff:c000:201"),
        ("CNAME", "Shop.Example.COM.", "shop.example.com"),
        ("CNAME", "bücher.example", "xn--bcher-kva.example."),
        ("NS", "NS1.Example.com", "ns1.example.com."),
        ("PTR", "host.example.com", "HOST.example.com."),
        ("MX", "010 Mail.example.com.", "10 mail.example.com"),
        ("TXT", "v=spf1 -all", '"v=spf1 -all"'),
        ("TXT", '"v=DKIM1; p=AAAA" "BBBB"', "v=DKIM1; p=AAAABBBB"),
        ("TXT", '"say \\"hi\\""', 'say "hi"'),
        ("TXT", '"gr\\195\\188n"', "grün"),
        ("SRV", "10  5 5060 SIP.example.com.", "10 5 5060 sip.example.com"),
        ("CAA", '0 ISSUE "LetsEncrypt.org"', "0 issue letsencrypt.org"),
        ("CAA", '0 issue "ca.example; account=Ab"', "0 issue ca.example;account=Ab"),
        ("SOA", "ns.example. host.example. 1 7200 3600 1209600 300", "NS.example host.example 2 2h 1h 2w ( 5m )"),
    ],
)
def test_spellings_of_one_value_are_equal(kind: RecordType, one: str, other: str) -> None:
    assert identity(record(kind, one)) == identity(record(kind, other))
    assert matches(record(kind, one), [normal_value(kind, other)])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("A", "192.0.2.1", "192.0.2.10"),
        ("CNAME", "shop.example.com", "shop.example.com.example.com"),
        ("MX", "10 mail.example.com", "20 mail.example.com"),
        ("TXT", "Case", "case"),
        ("TXT", "a b", "a  b"),
        ("TXT", '"\\195"', "\\195"),
        ("SRV", "10 5 5060 sip.example.com", "10 5 5061 sip.example.com"),
        ("CAA", '0 issue "ca.example"', '128 issue "ca.example"'),
        ("CAA", '0 issue "ca.example"', '0 issuewild "ca.example"'),
        ("CAA", '0 issue "ca.example; account=Ab"', '0 issue "ca.example; account=aB"'),
        ("SOA", "ns.example. host.example. 1 7200 3600 1209600 300", "ns.example host.example 1 7200 3600 1209600 301"),
    ],
)
def test_different_values_differ(kind: RecordType, one: str, other: str) -> None:
    assert identity(record(kind, one)) != identity(record(kind, other))
    assert not matches(record(kind, one), [normal_value(kind, other)])


def test_an_mx_priority_counts_wherever_it_is_written() -> None:
    answers = [normal_value("MX", "10 mail.example.com.")]

    assert matches(record("MX", "mail.example.com", priority="10"), answers)
    assert matches(record("MX", "mail.example.com", priority="010"), answers)
    assert matches(record("MX", "10 mail.example.com"), answers)
    assert matches(record("MX", "mail.example.com"), answers)
    assert not matches(record("MX", "mail.example.com", priority="20"), answers)
    assert not matches(record("MX", "10 mail.example.com", priority="20"), answers)
    assert identity(record("MX", "10 mail.example.com")) == identity(record("MX", "mail.example.com", priority="10"))
    assert identity(record("MX", "mail.example.com")) != identity(record("MX", "mail.example.com", priority="10"))


def test_an_soa_is_compared_as_far_as_it_is_given() -> None:
    answers = [normal_value("SOA", "ns1.example. host.example. 2026 7200 3600 1209600 300")]

    assert matches(record("SOA", "NS1.example."), answers)
    assert matches(record("SOA", "ns1.example host.example"), answers)
    assert not matches(record("SOA", "ns1.exam"), answers)


@pytest.mark.parametrize("kind", [kind for kind in RECORD_TYPES if kind != "TXT"])
def test_a_value_that_is_none_is_never_found(kind: RecordType) -> None:
    values = {
        normal_value("A", "192.0.2.1"),
        normal_value("MX", "10 a.example"),
        normal_value("SRV", "1 2 3 a.example"),
    }
    assert not matches(record(kind, "no such thing at all"), values)


def test_ttl_is_no_part_of_what_a_record_is() -> None:
    assert identity(Record("A", "@", "192.0.2.1", 60)) == identity(Record("A", "@", "192.0.2.1", 300))


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("@", "example.com"),
        ("WWW", "www.example.com"),
        ("_dmarc", "_dmarc.example.com"),
        ("*", "*.example.com"),
        ("*.shop", "*.shop.example.com"),
        ("bücher", "xn--bcher-kva.example.com"),
        ("www.example.com", "www.example.com.example.com"),
        ("www.example.com.", "www.example.com"),
    ],
)
def test_a_host_is_relative_to_the_domain(host: str, owner: str) -> None:
    assert owner_name(record("A", "192.0.2.1", host=host), "Example.com") == owner


# Against an independent reader of zone files -----------------------------------------------------------------

addresses_v4, addresses_v6 = st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(lambda each: each.exploded)
labels = st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,20}[A-Za-z0-9_])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=5).map(lambda parts: ".".join(parts) + ".")
shorts = st.integers(0, 65_535).map(str)
octets = st.lists(st.binary(max_size=255), min_size=1, max_size=4)
tags = st.from_regex(r"[A-Za-z0-9]{1,15}", fullmatch=True).filter(lambda tag: not tag.lower().startswith("issue"))
words = {
    "A": addresses_v4,
    "AAAA": addresses_v6,
    "CNAME": names,
    "NS": names,
    "PTR": names,
    "MX": st.tuples(shorts, names).map(" ".join),
    "SRV": st.tuples(shorts, shorts, shorts, names).map(" ".join),
    "CAA": st.tuples(st.integers(0, 255).map(str), tags, labels.map('"{}"'.format)).map(" ".join),
    "SOA": st.tuples(names, names, shorts, shorts, shorts, shorts, shorts).map(" ".join),
    "TXT": octets.map(lambda chunks: " ".join(f'"{quoted(chunk)}"' for chunk in chunks)),
}
typed_words = st.sampled_from(RECORD_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), words[kind]))


def quoted(chunk: bytes) -> str:
    return "".join(f"\\{octet:03d}" for octet in chunk)


def rdata(kind: str, text: str) -> dns.rdata.Rdata:
    return dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(kind), text)


@given(typed_words)
def test_a_value_and_what_a_server_makes_of_it_are_one(typed: tuple[RecordType, str]) -> None:
    kind, text = typed
    normal = normal_value(kind, text)

    assert normal_value(kind, rdata(kind, text).to_text()) == normal
    if kind not in ("TXT", "SOA"):  # a TXT's normal form is no longer quoted, an SOA's has lost its serial
        assert normal_value(kind, normal) == normal
    assert matches(record(kind, text), [normal])


@given(typed_words, typed_words)
def test_values_are_equal_exactly_when_dns_says_so(one: tuple[RecordType, str], other: tuple[RecordType, str]) -> None:
    if one[0] != other[0] or one[0] in ("SOA", "TXT", "CAA"):
        return
    kind = one[0]
    same = rdata(kind, one[1].lower()) == rdata(kind, other[1].lower())
    assert (normal_value(kind, one[1]) == normal_value(kind, other[1])) == same


@given(st.binary(), st.binary())
def test_texts_look_the_same_only_when_they_are(one: bytes, other: bytes) -> None:
    assert (text_of(one) == text_of(other)) == (one == other)
    assert re.search(r"[\0-\x1f]", text_of(one)) is None


@given(st.text())
def test_any_text_has_a_normal_form_as_a_name(text: str) -> None:
    assert normal_name(normal_name(text)) == normal_name(text)


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        (r"v=DKIM1\; k=rsa", "v=DKIM1; k=rsa"),
        (r"v=DKIM1\; k=rsa", r"v=DKIM1\\; k=rsa"),
        ("trail ", "trail "),
        (" x", "x"),
    ],
)
def test_a_text_without_quotes_is_found_as_it_is_and_as_in_a_zone_file(given: str, answered: str) -> None:
    wire = dns.rdata.from_text("IN", "TXT", f'"{answered}"').to_text()

    assert matches(record("TXT", given), [normal_value("TXT", wire)])
    assert not matches(record("TXT", f'"{given}x"'), [normal_value("TXT", wire)])
