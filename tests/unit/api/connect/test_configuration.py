"""The configuration of the connect modal: placeholders, defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from api.connect.resolution import ChosenDomain, PlaceholderValues, choose_domain, resolve
from common.connect.configuration import Configuration, InvalidConfiguration, parse_configuration

AROUND = PlaceholderValues(
    "apps.partner.example", "tls.partner.example", ("192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1")
)
CNAME = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}


def parsed(*records: dict[str, Any], **fields: Any) -> Configuration:
    return parse_configuration({"dnsRecords": list(records), **fields})


def resolved(configuration: Configuration, domain: str, subdomain: str | None = None) -> list[tuple[str, str, str]]:
    chosen = choose_domain(configuration, domain, subdomain)
    records = [each.record for each in resolve(configuration, chosen, AROUND)]
    return [(record.type, record.host, record.value) for record in records]


def test_placeholders_are_filled_in_host_and_value() -> None:
    txt = {"type": "TXT", "host": "_acme.{SUBDOMAIN}", "value": "{SLD}|{TLD}|{SUBDOMAIN}|{subdomain}", "ttl": "60"}
    assert resolved(parsed(CNAME, txt), "shop.example.co.uk") == [
        ("CNAME", "shop", "apps.partner.example"),
        ("TXT", "_acme.shop", "example|co.uk|shop|{subdomain}"),
    ]


def test_a_placeholder_in_small_letters_is_kept_with_a_warning() -> None:
    assert parsed(CNAME | {"host": "{subdomain}"}).warnings == (
        "dnsRecords[0].host: {subdomain} is kept as it is; placeholders are in capitals",
    )


def test_the_servers_of_the_service_are_two_addresses_of_the_records_family() -> None:
    root = {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300, "ssl": True}
    assert resolved(parsed(root), "example.com") == [("A", "@", "192.0.2.1"), ("A", "@", "192.0.2.2")]
    assert resolved(parsed(root | {"type": "AAAA"}), "example.com") == [("AAAA", "@", "2001:db8::1")]


@pytest.mark.parametrize(
    ("fields", "domain", "expected"),
    [
        ({}, "example.com", "@"),
        ({"hostRequired": True}, "example.com", "www"),
        ({"defaultSubdomain": "shop"}, "example.com", "shop"),
        ({"hostRequired": True}, "my.example.com", "my"),
    ],
)
def test_the_subdomain_is_the_persons_or_a_default(fields: dict[str, Any], domain: str, expected: str) -> None:
    record = CNAME if expected != "@" else CNAME | {"type": "TXT", "value": "x"}
    assert resolved(parsed(record, **fields), domain)[0][1] == expected


def test_records_may_differ_for_roots_and_subdomains() -> None:
    root = {"type": "TXT", "host": "@", "value": "root", "ttl": 60}
    both = parse_configuration({"dnsRecords": {"domain": [root], "subDomain": [CNAME]}})
    assert resolved(both, "example.com") == [("TXT", "@", "root")]
    assert resolved(both, "shop.example.com") == [("CNAME", "shop", "apps.partner.example")]


def test_www_redirect_adds_the_root() -> None:
    configuration = parsed(CNAME | {"ssl": True}, wwwRedirect=True)
    requested = resolve(configuration, ChosenDomain("example.com", "www"), AROUND)
    assert [(each.record.type, each.record.host, each.purpose.settings.redirect_to) for each in requested] == [
        ("CNAME", "www", None),
        ("A", "@", "https://www.example.com"),
        ("A", "@", "https://www.example.com"),
    ]
    assert requested[0].record.value == "tls.partner.example", "Secure's own target"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"dnsRecords": "x"}, "dnsRecords"),
        ({"dnsRecords": {"root": []}}, "dnsRecords"),
        ({"dnsRecords": [CNAME | {"type": "ALIAS"}]}, "dnsRecords[0].type"),
        ({"dnsRecords": [CNAME | {"ssl": "yes"}]}, "dnsRecords[0].ssl"),
        ({"dnsRecords": [CNAME | {"applicationUrl": "ftp://x"}]}, "dnsRecords[0].applicationUrl"),
        ({"dnsRecords": [CNAME | {"redirectTo": "www.example.com"}]}, "dnsRecords[0].redirectTo"),
        ({"dnsRecords": [CNAME | {"value": "{SERVICE_SERVERS}"}]}, "dnsRecords[0].value"),
        ({"dnsRecords": [CNAME], "power": True}, "power"),
        ({"dnsRecords": [CNAME], "hostRequired": 1}, "hostRequired"),
    ],
)
def test_a_wrong_key_is_named(given: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_configuration(given)
    assert refused.value.key == key


def test_tokens_are_not_kept() -> None:
    assert dict(parsed(CNAME, token="secret", applicationId="app", userId="u").stored) == {
        "dnsRecords": [CNAME],
        "userId": "u",
    }


def test_warnings_are_bounded() -> None:
    """74 KB of unknown keys made each answer of the flow 374 KB."""
    junk = {f"key{number}": 1 for number in range(5000)}
    record = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}
    for given in ({"dnsRecords": [record], **junk}, {"dnsRecords": [record | junk]}):
        warnings = parse_configuration(given).warnings
        assert (len(warnings), warnings[-1]) == (51, "4950 more warnings are left out")
