"""Secrets that would cross a network in plain text are found by the settings alone."""

from __future__ import annotations

import pytest

from api.cli.doctor import machine
from api.cli.doctor.findings import FindingState
from api.rules.plain_text import find_exposure, find_open_listener
from common.api_domain import api_domain, dialled_api
from common.settings import Settings, load

HTTPS = "https://api.acme.example"


def settings(listen: str, public_url: str) -> Settings:
    return load({"FRONTAGE_API_LISTEN": listen, "FRONTAGE_PUBLIC_URL": public_url})


@pytest.mark.parametrize(
    ("listen", "public_url", "seen"),
    [
        ("127.0.0.1:8000", "", None),
        ("[::1]:8000", "", None),
        ("localhost:8000", "http://api.localhost:8000", None),
        ("127.0.0.1:8000", HTTPS, None),
        ("0.0.0.0:8000", HTTPS, None),
        ("0.0.0.0:8000", "", "the API listens on 0.0.0.0:8000 without TLS"),
        ("[::]:8000", "", "the API listens on [::]:8000 without TLS"),
        ("10.0.0.5:8000", "", "the API listens on 10.0.0.5:8000 without TLS"),
        ("api.internal:8000", "", "the API listens on api.internal:8000 without TLS"),
        ("127.0.0.1:8000", "http://api.acme.example", "FRONTAGE_PUBLIC_URL is http://api.acme.example"),
    ],
)
def test_exposure_of_secrets(listen: str, public_url: str, seen: str | None) -> None:
    given = settings(listen, public_url)
    exposure = find_exposure(given)
    findings = machine.check_plain_text(given)
    if seen is None:
        assert exposure is None
        assert all(finding.state is FindingState.NOTE for finding in findings)
    else:
        assert exposure is not None
        assert exposure.seen.startswith(seen)
        assert "plain text" in exposure.seen
        assert [(finding.state, finding.seen) for finding in findings] == [(FindingState.BROKEN, exposure.seen)]


def test_a_listener_beside_the_proxy_is_noted() -> None:
    exposure = find_open_listener(settings("0.0.0.0:8000", HTTPS))
    assert exposure is not None
    assert "0.0.0.0:8000" in exposure.seen
    assert find_open_listener(settings("127.0.0.1:8000", HTTPS)) is None


@pytest.mark.parametrize(
    ("public_url", "domain"),
    [("", None), ("https://API.Acme.example:8443/", "api.acme.example"), ("https://192.0.2.1", None)],
)
def test_the_api_domain_is_the_host_of_its_public_url(public_url: str, domain: str | None) -> None:
    assert api_domain(settings("127.0.0.1:8000", public_url)) == domain


@pytest.mark.parametrize(
    ("listen", "dialled"),
    [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("localhost:80", "127.0.0.1:80"), ("10.0.0.5:80",) * 2],
)
def test_where_a_process_of_this_machine_finds_the_api(listen: str, dialled: str) -> None:
    assert str(dialled_api(settings(listen, ""))) == dialled
