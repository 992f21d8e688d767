"""Settings of the ACME issuer."""

from __future__ import annotations

import pytest

from common.errors import OperatorError
from common.setting_values import ExternalAccount
from common.settings import load

MAC = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"


def test_directories_keep_their_order() -> None:
    settings = load({"FRONTAGE_ACME_DIRECTORY": "https://b.example/dir , https://a.example:14000/acme/dir?x=1"})
    assert settings.acme_directory == ("https://b.example/dir", "https://a.example:14000/acme/dir?x=1")
    assert load({}).acme_directory == ()


@pytest.mark.parametrize(
    "text", ["http://a.example/dir", "a.example", "https://", "https://a.example/,https://a.example/"]
)
def test_what_is_no_directory_is_refused(text: str) -> None:
    with pytest.raises(OperatorError, match="FRONTAGE_ACME_DIRECTORY"):
        load({"FRONTAGE_ACME_DIRECTORY": text})


def test_external_accounts_belong_to_hosts_and_are_not_shown() -> None:
    settings = load({"FRONTAGE_ACME_EAB": f"a.example=kid-1:{MAC}, b.example:14000=kid-2:{MAC}=="})
    assert settings.acme_eab == (
        ExternalAccount("a.example", "kid-1", MAC),
        ExternalAccount("b.example:14000", "kid-2", MAC),
    )
    assert MAC not in repr(settings)
    assert MAC not in repr(settings.acme_eab)


@pytest.mark.parametrize(
    "text", [MAC, f"kid-1:{MAC}", f"a.example={MAC}", "a.example=kid-1:short", f"a.example=kid:{MAC}/"]
)
def test_what_is_no_external_account_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(OperatorError, match=r"FRONTAGE_ACME_EAB.*the MAC key as the CA prints it") as refused:
        load({"FRONTAGE_ACME_EAB": text})
    assert MAC not in str(refused.value)
