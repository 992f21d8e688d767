"""What an application may have its responses carry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from api.rules.application_settings import InvalidSetting
from api.rules.response_policy import Hsts, check_domain_policy, read_lines, read_policy
from api.schemas.response_policy import DomainResponsePolicyBody

YEAR = 365 * 86_400


def read(hsts: Hsts | None = None, fields: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any] | None:
    return read_policy(hsts, nosniff=False, referrer_policy=None, fields=fields)


def test_what_is_stored_is_what_was_asked_for() -> None:
    assert read() is None
    assert read(Hsts(0)) == {"hsts_seconds": 0}
    assert read(Hsts(YEAR, True, True, True)) == {"hsts_seconds": YEAR, "hsts_subdomains": True, "hsts_preload": True}
    stored = read_policy(None, nosniff=True, referrer_policy="origin", fields={"X-A": "b"})
    assert stored == {"nosniff": True, "referrer_policy": "origin", "fields": {"X-A": "b"}}


@pytest.mark.parametrize(
    ("hsts", "words"),
    [
        (Hsts(YEAR, with_subdomains=True), "customersAgree"),
        (Hsts(YEAR, preload=True), "customersAgree"),
        (Hsts(YEAR - 1, True, True, True), "preload goes with"),
        (Hsts(YEAR, False, True, True), "preload goes with"),
        (Hsts(3 * YEAR), "expected 0 to"),
    ],
)
def test_hsts_beyond_the_domains_that_are_served_needs_the_customers_word(hsts: Hsts, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        read(hsts)


@pytest.mark.parametrize(
    "fields",
    [
        {"Set-Cookie": "a=b"},
        {"content-length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Access-Control-Allow-Origin": "*"},
        {"strict-transport-security": "max-age=1"},
        {"X-A": "b\r\nSet-Cookie: c=d"},
        {"X-A": "b\n"},
        {"X-A": ""},
        {"X-A": "\u00fc"},
        {"X A": "b"},
        {"X-A:": "b"},
        {"": "b"},
        {"X-A": "1", "x-a": "2"},
        {f"X-{number}": "b" for number in range(21)},
        {"X-A": "b" * 2001},
        {"X-A": "b" * 2000, "X-B": "b" * 2000, "X-C": "b" * 100},
    ],
)
def test_a_field_that_is_not_the_partners_to_set_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting, match="fields: "):
        read(fields=fields)


def test_lines_are_read_as_fields() -> None:
    assert read_lines(" X-A: b: c \r\n\r\nX-B:d") == {"X-A": "b: c", "X-B": "d"}
    for text in ("X-A", "X-A: b\nX-A: c"):
        with pytest.raises(InvalidSetting, match="expected a line"):
            read_lines(text)


def test_a_domain_keeps_what_it_states_and_nothing_else() -> None:
    def kept(**given: Any) -> dict[str, Any]:
        return DomainResponsePolicyBody.model_validate(given).stored()

    assert kept() == kept(hsts=None, nosniff=None, fields={}) == {}
    agreed = {"maxAge": YEAR, "includeSubDomains": True, "customersAgree": True}
    stated = {"hsts": agreed, "nosniff": False, "referrerPolicy": "off", "fields": {"X-A": "", "X-B": "c"}}
    assert kept(**stated) == stated
    assert kept(hsts="off", compression="off") == {"hsts": "off", "compression": "off"}


@pytest.mark.parametrize(
    ("hsts", "fields", "words"),
    [
        (Hsts(YEAR, with_subdomains=True), {}, "customersAgree"),
        (Hsts(YEAR, preload=True), {}, "customersAgree"),
        (None, {"Set-Cookie": ""}, "origin's alone"),
        (None, {"Referrer-Policy": "origin"}, "setting of its own"),
        (None, {"X-A": "b\r\nX-B: c"}, "visible ASCII"),
        (None, {"X-A": "", "x-a": "1"}, "twice"),
    ],
)
def test_a_domain_s_own_policy_has_the_application_s_limits(
    hsts: Hsts | None, fields: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidSetting, match=words):
        check_domain_policy(hsts, fields)
