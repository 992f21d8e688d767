"""Whether a domain is registered and has expired, by its delegation and RDAP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from common.dns import Answer, Outcome
from common.domain_check.registration import (
    InvalidRdap,
    RdapFailure,
    Registration,
    RegistryEntry,
    decide,
    packaged_bootstrap,
    parse_bootstrap,
    read_entry,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DELEGATED, IN_ZONE, ABSENT = Answer(Outcome.RECORDS, ("ns.test",)), Answer(Outcome.NO_DATA), Answer(Outcome.NO_NAME)
LIVE, PAST = RegistryEntry(True, NOW + timedelta(days=1)), RegistryEntry(True, NOW - timedelta(days=1))
ENDING = RegistryEntry(True, NOW + timedelta(days=20), frozenset({"pending delete"}))
UNKNOWN = RegistryEntry(is_registered=False)


@pytest.mark.parametrize(
    ("delegation", "entry", "registration"),
    [
        (DELEGATED, LIVE, Registration(True, False)),
        (DELEGATED, PAST, Registration(True, True)),
        (DELEGATED, ENDING, Registration(True, True)),
        (DELEGATED, UNKNOWN, Registration(True, False)),
        (DELEGATED, None, Registration(True, False)),
        (IN_ZONE, None, Registration(True, False)),
        (ABSENT, None, Registration(False, False)),
        (ABSENT, UNKNOWN, Registration(False, False)),
        (ABSENT, LIVE, Registration(True, False)),
        (ABSENT, ENDING, Registration(True, True)),
    ],
)
def test_delegation_and_registry_decide_together(
    delegation: Answer, entry: RegistryEntry | None, registration: Registration
) -> None:
    assert decide(delegation, entry, NOW) == registration


@pytest.mark.parametrize("delegation", [DELEGATED, ABSENT])
@pytest.mark.parametrize("failure", list(RdapFailure))
def test_could_not_ask_is_never_no(delegation: Answer, failure: RdapFailure) -> None:
    assert decide(delegation, failure, NOW) is failure


def test_an_entry_is_read_as_the_registry_writes_it() -> None:
    body = orjson.dumps(
        {
            "objectClassName": "domain",
            "ldhName": "SHOP.TEST",
            "status": ["client transfer prohibited", "Redemption Period"],
            "events": [
                {"eventAction": "expiration", "eventDate": "2027-01-02T03:04:05.678Z"},
                {"eventAction": "expiration", "eventDate": "not a date"},
                {"eventAction": "last changed", "eventDate": "2030-01-01T00:00:00Z"},
                "text",
            ],
        }
    )

    entry = read_entry(200, body, "shop.test")

    assert entry.expires_at is not None
    assert entry.expires_at.date().isoformat() == "2027-01-02"
    assert entry.has_expired(NOW)


def test_the_packaged_file_leads_to_the_registries() -> None:
    servers = packaged_bootstrap()

    assert servers.find("example.com") == ("https://rdap.verisign.com/com/v1/",)
    assert servers.find("example.uk") == ("https://rdap.nominet.uk/uk/",)
    assert servers.find("example.co.uk") == servers.find("example.uk")
    assert servers.find("example.test") == ()
    assert len(servers.servers) > 1000


@pytest.mark.parametrize("body", [b"", b"[]", b'{"services": [["com"]]}', b'{"services": [[["com"], ["ftp://x/"]]]}'])
def test_a_damaged_file_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRdap):
        parse_bootstrap(body)
