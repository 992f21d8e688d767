"""What a person is offered: by hand in the provider's words, or with a token that says where it is made."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from common.connect.ways import provider_apis
from common.connect.ways.offers import WORDS, find_offers, manual
from common.connect.ways.provider_apis import PROVIDER_APIS
from common.dns import Answer, Outcome
from common.domain_check.providers import Provider, provider_table
from common.domain_check.zone_view import ZoneView
from common.flows.requested import Requested
from common.flows.ways import ProviderApiWay
from common.records import Record, RecordType

NOTHING = Answer(Outcome.NO_DATA)
VIEW = ZoneView("customer.test", NOTHING, NOTHING, NOTHING)
PROVIDERS = {each.id: each for each in provider_table().providers}


def requested(kind: RecordType, host: str, value: str) -> Requested:
    return Requested(Record(kind, host, value, 300))


@pytest.mark.parametrize(
    ("provider", "words", "hosts"),
    [
        ("cloudflare", ("Name", "Content"), ["@", "www"]),
        ("google-cloud-dns", ("DNS name", "Data"), ["", "www"]),
        ("name-com", ("Host", "Answer"), ["", "www"]),
        ("hostgator", ("Name", "Record"), ["customer.test", "www.customer.test"]),
        ("a2hosting", ("Host", "Value"), ["@", "www"]),
        ("hover", ("Host", "Value"), ["@", "www"]),
    ],
)
def test_records_by_hand_are_in_the_providers_words(provider: str, words: tuple[str, str], hosts: list[str]) -> None:
    records = [requested("A", "@", "192.0.2.1"), requested("CNAME", "www", "target.test.")]
    shown = manual(PROVIDERS[provider], VIEW, records)
    assert (shown.field_names.host, shown.field_names.value) == words
    assert [each.host for each in shown.records] == hosts
    assert [each.value for each in shown.records] == ["192.0.2.1", "target.test"]
    assert shown.help_url == PROVIDERS[provider].help_url


def test_words_are_those_of_providers_in_the_table() -> None:
    assert WORDS.keys() <= PROVIDERS.keys()
    assert manual(Provider("", "unknown.test"), VIEW, []).help_url is None


def test_a_token_is_asked_for_with_the_page_where_it_is_made_and_the_least_right() -> None:
    offered = {each.api for each in PROVIDERS.values()} & PROVIDER_APIS.keys()
    assert len(offered) >= 10
    assert PROVIDER_APIS.keys() - offered == {"powerdns"}, "for people who run their own"
    for api in PROVIDER_APIS.values():
        assert urlsplit(api.token_url).scheme == "https", api.id
        assert api.least_right.endswith("."), api.id
        assert any(field.is_secret and field.is_required for field in api.fields), api.id


def test_no_page_makes_the_key_of_a_persons_own_server() -> None:
    ways = find_offers(Provider("", "unknown.test"), VIEW, [], None).ways
    assert {way.api: way.is_own_server for way in ways if isinstance(way, ProviderApiWay)} == {"powerdns": True}
    ways = find_offers(PROVIDERS["cloudflare"], VIEW, [], None).ways
    assert {way.api: way.is_own_server for way in ways if isinstance(way, ProviderApiWay)} == {"cloudflare": False}


def test_without_dns_lexicon_no_way_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_apis, "_is_lexicon_installed", lambda: False)
    for provider in (PROVIDERS["cloudflare"], Provider("", "unknown.test")):
        ways = [way.way for way in find_offers(provider, VIEW, [], None).ways]
        assert ways == ["manual", "dynamic_update"]
