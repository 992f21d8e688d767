"""Whose a domain is: the verdict for every claim, holder and memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from common.names import parse_domain
from common.ownership import Claim, Evidence, OwnNames, Party, Standing, Target, Verdict, is_proof, judge, txt_record
from common.settings import load

OWN = OwnNames(frozenset({"power.frontage.test", "secure.frontage.test", "api.frontage.test"}))
SHOP, ROOT = "shop.customer.test", "customer.test"
FREE = Standing()


def verdict(
    name: str, standing: Standing, claim: Claim | None, *, against: str | None = None, to_holder: bool | None = None
) -> Verdict:
    """Application "a" asks."""
    return judge(parse_domain(name), "a", standing, Evidence(claim, against, to_holder), OWN)


@pytest.mark.parametrize("name", [SHOP, ROOT])
@pytest.mark.parametrize("claim", [Claim.CNAME, Claim.TXT])
def test_a_proof_takes_a_free_name(name: str, claim: Claim) -> None:
    assert verdict(name, FREE, claim) is Verdict.ENROL
    assert verdict(name, Standing(former_holders=("b",)), claim) is Verdict.ENROL


def test_an_address_takes_a_root_that_no_application_held() -> None:
    assert verdict(ROOT, FREE, Claim.ADDRESS) is Verdict.ENROL
    assert verdict(SHOP, FREE, Claim.ADDRESS) is Verdict.UNPROVEN


@pytest.mark.parametrize("name", [SHOP, ROOT])
def test_only_the_last_holder_comes_back_by_address(name: str) -> None:
    assert verdict(name, Standing(former_holders=("a",)), Claim.ADDRESS) is Verdict.ENROL
    assert verdict(name, Standing(former_holders=("a", "b")), Claim.ADDRESS) is Verdict.ENROL
    assert verdict(name, Standing(former_holders=("b",)), Claim.ADDRESS) is Verdict.UNPROVEN
    assert verdict(name, Standing(former_holders=("b", "a")), Claim.ADDRESS) is Verdict.UNPROVEN


@pytest.mark.parametrize("root", ["frontage.test", "partner.test"])
def test_the_root_above_a_target_needs_a_proof(root: str) -> None:
    standing = Standing(is_above_foreign_target=root == "partner.test")
    assert verdict(root, standing, Claim.ADDRESS) is Verdict.UNPROVEN
    assert verdict(root, standing, Claim.TXT) is Verdict.ENROL


def test_our_own_names_and_cname_targets_are_never_enrolled() -> None:
    for name in sorted(OWN.names):
        for claim in Claim:
            assert verdict(name, FREE, claim) is Verdict.RESERVED
            assert verdict(name, Standing(holder="a"), claim) is Verdict.RESERVED
    own = Standing(is_target=True, is_own_target=True)
    assert verdict("apps.partner.test", own, Claim.CNAME) is Verdict.RESERVED
    for claim in (Claim.TXT, Claim.ADDRESS, None):
        assert verdict("apps.partner.test", Standing(is_target=True), claim) is Verdict.RESERVED


def test_giving_a_customers_name_as_a_target_keeps_it_from_no_partner() -> None:
    assert verdict(SHOP, Standing(is_target=True), Claim.CNAME) is Verdict.ENROL


def test_of_the_targets_on_the_way_the_one_set_first_proves_the_name() -> None:
    way = ("cust-7.a.test", "a.test", "lb.a.test", "power.test")
    first, later, last = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3))
    target = Target("a.test", "a", "org", later)
    for rival in (Target("cust-7.a.test", "b", None, last), Target("lb.a.test", "b", None, last)):
        assert is_proof(way, Party("a", frozenset({"a.test"}), "org"), [target, rival])
        assert not is_proof(way, Party("b", frozenset({rival.name})), [target, rival])
    older = Target("lb.a.test", "b", None, first)
    assert not is_proof(way, Party("a", frozenset({"a.test"}), "org"), [older, target])
    sibling = Target("lb.a.test", "c", "org", first)
    assert is_proof(way, Party("a", frozenset({"a.test"}), "org"), [sibling, target])
    assert not is_proof(("lb.a.test",), Party("a", frozenset({"a.test"}), "org"), [])


def test_a_name_without_a_claim_is_nobodys_to_take() -> None:
    assert verdict(SHOP, FREE, None) is Verdict.UNPROVEN


def test_a_holder_needs_no_claim_for_its_other_product() -> None:
    for claim in (*Claim, None):
        assert verdict(SHOP, Standing(holder="a", former_holders=("b",)), claim) is Verdict.ENROL


@pytest.mark.parametrize("claim", [Claim.CNAME, Claim.TXT])
def test_a_held_name_moves_with_a_proof_once_it_no_longer_leads_to_its_holder(claim: Claim) -> None:
    held = Standing(holder="b")
    assert verdict(SHOP, held, claim, against="b", to_holder=False) is Verdict.MOVE
    assert verdict(SHOP, held, claim, against="b", to_holder=True) is Verdict.LEADS_TO_HOLDER
    assert verdict(SHOP, held, claim, against="b", to_holder=None) is Verdict.UNKNOWN


def test_a_held_name_never_moves_by_address() -> None:
    held = Standing(holder="b", former_holders=("a",))
    for claim in (Claim.ADDRESS, None):
        for name in (SHOP, ROOT):
            assert verdict(name, held, claim, against="b", to_holder=False) is Verdict.HELD


def test_evidence_against_another_holder_moves_nothing() -> None:
    for against in (None, "c"):
        assert verdict(SHOP, Standing(holder="b"), Claim.CNAME, against=against, to_holder=False) is Verdict.UNKNOWN


def test_own_names_are_the_hosts_of_our_settings() -> None:
    settings = load(
        {"FRONTAGE_POWER_TARGET": "Power.Frontage.Test.", "FRONTAGE_PUBLIC_URL": "https://API.frontage.test:8443/x"}
    )
    own = OwnNames.of(settings)
    assert own.names == {"power.frontage.test", "secure.frontage.localhost", "api.frontage.test"}
    assert OwnNames.of(load({})).names == {"power.frontage.localhost", "secure.frontage.localhost"}  # no addresses


def test_the_txt_record_names_the_application() -> None:
    assert txt_record(SHOP, "app_1") == ("_frontage.shop.customer.test", "application=app_1")
