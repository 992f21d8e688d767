"""Records that no zone can hold are refused with what is wrong; all that a zone can hold is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.rules.record_rules import check_record
from common.records import RECORD_TYPES, InvalidRecord, Record, RecordType, matches, owner_name

DOMAIN = "customer.com"


def refusal(kind: RecordType, value: str, *, host: str = "www", priority: str | None = None) -> str | None:
    try:
        check_record(Record(kind, host, value, 300, priority), DOMAIN)
    except InvalidRecord as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("A", "192.0.2.1"), ("A", " 192.0.2.1 "), ("AAAA", "2001:DB8::1"), ("AAAA", "::ffff:192.0.2.1"),
        ("CNAME", "apps.partner.com"), ("CNAME", "Apps.Partner.COM."), ("CNAME", "_x._domainkey.bücher.example"),
        ("MX", "mail.partner.com"), ("MX", "10 mail.partner.com."), ("MX", "0 ."), ("MX", "."),
        ("TXT", "v=spf1 -all"), ("TXT", '"a" "b\\255"'), ("TXT", "\\999 unquoted is text"), ("TXT", "x" * 65_535),
        ("NS", "ns1.partner.com"), ("PTR", "host.partner.com"), ("SRV", "10 5 5060 sip.partner.com"),
        ("SRV", "0 0 0 ."), ("CAA", '0 issue "ca.example"'), ("CAA", "128 iodef mailto:a@b.example"),
        ("SOA", "ns1.partner.com"), ("SOA", "ns1.partner.com admin.partner.com 1 2h 30m 4w 300"),
    ],
)  # fmt: skip
def test_what_a_zone_can_hold_is_taken(kind: RecordType, value: str) -> None:
    assert refusal(kind, value) is None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("A", "not-an-ip", "value must be an IPv4 address"),
        ("A", "2001:db8::1", "value must be an IPv4 address"),
        ("A", "192.0.2.256", "value must be an IPv4 address"),
        ("A", "apps.partner.com", "value must be an IPv4 address"),
        ("AAAA", "192.0.2.1", "value must be an IPv6 address"),
        ("AAAA", "fe80::1%eth0", "value must be an IPv6 address"),
        ("CNAME", "192.0.2.1", "value must be a host name"),
        ("CNAME", "https://apps.partner.com/", "value must be a host name"),
        ("CNAME", "apps..partner.com", "value must be a host name"),
        ("CNAME", "apps partner com", "value must be a host name"),
        ("CNAME", "-apps.partner.com", "value must be a host name"),
        ("CNAME", ".", "value must be a host name"),
        ("NS", "192.0.2.1", "value must be a name server's host name"),
        ("PTR", "a@b", "value must be a host name"),
        ("MX", "10", "value must be a mail server's host name"),
        ("MX", "192.0.2.1", "value must be a mail server's host name"),
        ("MX", "65536 mail.partner.com", "value must be a mail server's host name"),
        ("SRV", "sip.partner.com", "value must be priority, weight, port and host name"),
        ("SRV", "10 5 99999 sip.partner.com", "value must be priority, weight, port and host name"),
        ("SRV", "10 5 5060 a..b", "value must be priority, weight, port and host name"),
        ("CAA", "ca.example", "value must be flags, tag and value"),
        ("CAA", '256 issue "ca.example"', "value must be flags, tag and value"),
        ("CAA", '0 is-sue "ca.example"', "value must be flags, tag and value"),
        ("SOA", "ns1.partner.com admin.partner.com 1", "value must be the primary name server"),
        ("SOA", "()", "value must be the primary name server"),
        ("TXT", '"\\999"', "value must be text"),
    ],
)
def test_a_value_that_no_name_server_answers_is_refused(kind: RecordType, value: str, expected: str) -> None:
    assert (refusal(kind, value) or "").startswith(expected)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("customer.com", "host is relative to customer.com: send @, not customer.com"),
        ("www.customer.com", "host is relative to customer.com: send www, not www.customer.com"),
        ("WWW.Customer.Com", "host is relative to customer.com: send www, not www.customer.com"),
        (".".join(["x" * 60] * 4), "host and customer.com make a name of more than 253 characters"),
    ],
)
def test_a_host_that_repeats_the_domain_or_is_too_long_is_refused(host: str, expected: str) -> None:
    assert refusal("A", "192.0.2.1", host=host) == expected


@pytest.mark.parametrize("host", ["@", "www", "*.a", "_dmarc", "www.customer.com.", "customer.com.", "mycustomer.com"])
def test_other_hosts_are_taken(host: str) -> None:
    assert refusal("A", "192.0.2.1", host=host) is None


def test_a_priority_that_contradicts_the_value_is_refused() -> None:
    assert refusal("MX", "10 mail.partner.com", priority="20") == "priority 20 contradicts the value's 10"
    assert refusal("MX", "010 mail.partner.com", priority="10") is None
    assert matches(Record("MX", "@", "010 mail.partner.com", 300, "10"), {"10 mail.partner.com"})


@given(st.sampled_from(RECORD_TYPES), st.text(min_size=1), st.text(min_size=1))
def test_any_text_is_taken_or_refused(kind: RecordType, host: str, value: str) -> None:
    record = Record(kind, host, value, 300)
    try:
        check_record(record, DOMAIN)
    except InvalidRecord:
        return
    assert len(owner_name(record, DOMAIN)) <= 253
