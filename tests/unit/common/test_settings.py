"""A value that makes no sense stops the start with one sentence that names its variable."""

from __future__ import annotations

from dataclasses import fields

import pytest

from common.accounts import ROLES
from common.errors import OperatorError
from common.settings import PREFIX, Settings, load

NONSENSE = ("💥", "a b", "http://[", "https://[", "http://h.example:99999", "-1", "1e400", "nan", ",")
_FREE = {
    "acme_ca_file",
    "acme_caa_identities",
    "acme_email",
    "database_url",
    "feed_url",
    "master_key_file",
    "oidc_claim",
    "oidc_client_id",
    "oidc_client_secret_file",
    "state_dir",
}
"""Paths and texts, whose value is judged where it is used."""


@pytest.mark.parametrize("name", [field.name for field in fields(Settings) if field.name not in _FREE])
def test_nonsense_is_refused_in_one_sentence_or_means_something(name: str) -> None:
    sentences = [complaint for value in NONSENSE if (complaint := complaint_about(name, value))]
    assert len(sentences) >= len(NONSENSE) - 3
    for sentence in sentences:
        assert f"{PREFIX}{name.upper()}" in sentence
        assert "\n" not in sentence


def complaint_about(name: str, value: str) -> str | None:
    try:
        load({f"{PREFIX}{name.upper()}": value})
    except OperatorError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_URL", "http://["),
        ("PUBLIC_URL", "https://api.example:99999"),
        ("RDAP_BOOTSTRAP", "https://["),
        ("ACME_DIRECTORY", "https://[/dir"),
        ("POWER_TARGET", "a b"),
        ("POWER_TARGET", "http://power.example"),
        ("SSL_TARGET", "192.0.2.1"),
        ("SSL_TARGET", "secure.example:443"),
    ],
)
def test_an_address_or_name_that_no_program_could_use_is_refused(name: str, value: str) -> None:
    with pytest.raises(OperatorError, match=f"{PREFIX}{name}"):
        load({f"{PREFIX}{name}": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_URL", "https://api.example:8443/frontage"),
        ("PUBLIC_URL", "http://[::1]:8000"),
        ("POWER_TARGET", "power.example.com."),
        ("POWER_TARGET", "_edge.müller.example"),
        ("SSL_TARGET", "localhost"),
    ],
)
def test_an_address_or_name_that_can_be_used_is_taken(name: str, value: str) -> None:
    assert getattr(load({f"{PREFIX}{name}": value}), name.lower()) == value


@pytest.mark.parametrize("role", ROLES)
def test_a_provider_gives_every_role_and_what_is_set_reads_back(role: str) -> None:
    text = f"a=b=Acme & Sons/{role},ops=operator"
    grants = load({f"{PREFIX}OIDC_ROLES": text}).oidc_roles
    assert [(each.value, each.organisation, each.role) for each in grants] == [
        ("a=b", "Acme & Sons", role),
        ("ops", None, None),
    ]
    assert ",".join(map(str, grants)) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OIDC_ISSUER", "http://login.example"),
        ("OIDC_ROLES", "ops=admin"),
        ("OIDC_ROLES", "ops=Acme/king"),
        ("OIDC_ROLES", "=operator"),
        ("OIDC_ISSUER", "https://login.example"),  # alone
    ],
)
def test_a_provider_that_could_not_be_used_is_refused(name: str, value: str) -> None:
    with pytest.raises(OperatorError, match=f"{PREFIX}{name}"):
        load({f"{PREFIX}{name}": value})
