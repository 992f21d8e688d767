"""What a browser's configuration may ask for: the pure rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from common.connect.configuration import parse_configuration
from common.connect.rights import BeyondRights, is_own_enrolment, merge, refuse_foreign_values
from common.db.applications import Application
from common.domain_settings import DomainSettings
from common.flows.enrolments import ProductEnrolment

RECORD = {"type": "CNAME", "host": "www", "value": "{CNAME_TARGET}", "ttl": 300}


def application(url: str | None = "https://app.example.com/shop", paths: tuple[str, ...] = ("/static",)) -> Application:
    given: dict[str, Any] = dict.fromkeys(Application.__annotations__)
    return Application(**given | {"application_url": url, "root_path_access": paths, "created_at": datetime.now(UTC)})


@pytest.mark.parametrize(
    ("fields", "is_own"),
    [
        ({}, True),
        ({"applicationUrl": "https://APP.example.com:443/shop"}, True),
        ({"applicationUrl": "https://app.example.com/shop/"}, False),
        ({"applicationUrl": "http://app.example.com/shop"}, False),
        ({"applicationUrl": "https://app.example.com:8443/shop"}, False),
        ({"applicationUrl": "https://app.example.com.evil.example/shop"}, False),
        ({"powerRootPathAccess": ["/static"]}, True),
        ({"powerRootPathAccess": ["/static", "/admin"]}, False),
        ({"powerRootPathAccess": []}, False),
        ({"ssl": True, "redirectTo": "app.example.com"}, False),
    ],
)
def test_values_that_lead_visitors_are_the_applications_own(fields: dict[str, Any], is_own: bool) -> None:
    configuration = parse_configuration({"dnsRecords": {"subDomain": [RECORD, RECORD | fields]}})
    if is_own:
        refuse_foreign_values(configuration, application())
    else:
        with pytest.raises(BeyondRights):
            refuse_foreign_values(configuration, application())


def test_an_application_without_an_origin_lends_none() -> None:
    configuration = parse_configuration({"dnsRecords": [RECORD | {"applicationUrl": "https://app.example.com"}]})
    for url in (None, ""):
        with pytest.raises(BeyondRights):
            refuse_foreign_values(configuration, application(url))


def test_a_registered_configuration_is_the_ground() -> None:
    ground = {"dnsRecords": [RECORD], "power": True, "locale": "en"}
    assert merge(ground, {"locale": "de", "power": True, "userId": "u"}) == ground | {"locale": "de", "userId": "u"}
    assert merge(ground, {"dnsRecords": [dict(RECORD)], "monitor": None}) == ground
    for given in ({"dnsRecords": [RECORD, RECORD]}, {"power": False}, {"monitor": False}, {"secureRootDomain": True}):
        with pytest.raises(BeyondRights, match=next(iter(given))):
            merge(ground, given)
    with pytest.raises(BeyondRights, match="prefilledDomain"):
        merge(ground | {"prefilledDomain": "a.example"}, {"prefilledDomain": "b.example"})


def test_an_enrolment_redirects_to_its_own_flows_name_alone() -> None:
    wanted = ProductEnrolment("secure", "customer.example", DomainSettings(redirect_to="https://www.customer.example"))
    assert is_own_enrolment(wanted, application(), "www.customer.example")
    assert not is_own_enrolment(wanted, application(), "customer.example")
    elsewhere = replace(wanted, settings=DomainSettings(redirect_to="https://www.customer.example/x"))
    assert not is_own_enrolment(elsewhere, application(), "www.customer.example")
    assert not is_own_enrolment(wanted, application(), None)
