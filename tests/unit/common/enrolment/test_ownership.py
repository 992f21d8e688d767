"""Whose a domain is: the verdict for every claim, holder and memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from common.enrolment.ownership import (
    OwnershipClaim,
    OwnershipEvidence,
    OwnershipRecord,
    OwnershipVerdict,
    OwnNames,
    Party,
    Target,
    is_proof,
    judge_claim,
    txt_record,
)
from common.names import parse_enrollable
from common.settings import load

OWN = OwnNames(frozenset({"power.frontage.test", "secure.frontage.test", "api.frontage.test"}))
SHOP, ROOT = "shop.customer.test", "customer.test"
FREE = OwnershipRecord()


def verdict(
    name: str,
    standing: OwnershipRecord,
    claim: OwnershipClaim | None,
    *,
    against: str | None = None,
    to_holder: bool | None = None,
) -> OwnershipVerdict:
    """Application "a" asks."""
    return judge_claim(parse_enrollable(name), "a", standing, OwnershipEvidence(claim, against, to_holder), OWN)


@pytest.mark.parametrize("name", [SHOP, ROOT])
@pytest.mark.parametrize("claim", [OwnershipClaim.CNAME, OwnershipClaim.TXT])
def test_a_proof_takes_a_free_name(name: str, claim: OwnershipClaim) -> None:
    assert verdict(name, FREE, claim) is OwnershipVerdict.ENROL
    assert verdict(name, OwnershipRecord(former_holders=("b",)), claim) is OwnershipVerdict.ENROL


def test_an_address_takes_a_root_that_no_application_held() -> None:
    assert verdict(ROOT, FREE, OwnershipClaim.ADDRESS) is OwnershipVerdict.ENROL
    assert verdict(SHOP, FREE, OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN


@pytest.mark.parametrize("name", [SHOP, ROOT])
def test_only_the_last_holder_comes_back_by_address(name: str) -> None:
    assert verdict(name, OwnershipRecord(former_holders=("a",)), OwnershipClaim.ADDRESS) is OwnershipVerdict.ENROL
    assert verdict(name, OwnershipRecord(former_holders=("a", "b")), OwnershipClaim.ADDRESS) is OwnershipVerdict.ENROL
    assert verdict(name, OwnershipRecord(former_holders=("b",)), OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN
    assert (
        verdict(name, OwnershipRecord(former_holders=("b", "a")), OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN
    )


@pytest.mark.parametrize("root", ["frontage.test", "partner.test"])
def test_the_root_above_a_target_needs_a_proof(root: str) -> None:
    standing = OwnershipRecord(is_above_foreign_target=root == "partner.test")
    assert verdict(root, standing, OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN
    assert verdict(root, standing, OwnershipClaim.TXT) is OwnershipVerdict.ENROL


def test_our_own_names_and_own_cname_targets_are_never_enrolled() -> None:
    for name in sorted(OWN.names):
        for claim in OwnershipClaim:
            assert verdict(name, FREE, claim) is OwnershipVerdict.RESERVED
            assert verdict(name, OwnershipRecord(holder="a"), claim) is OwnershipVerdict.RESERVED
    own = OwnershipRecord(is_target=True, is_own_target=True)
    assert verdict("apps.partner.test", own, OwnershipClaim.CNAME) is OwnershipVerdict.RESERVED


def test_giving_a_customers_name_as_a_target_keeps_it_from_no_proof() -> None:
    for claim in (OwnershipClaim.CNAME, OwnershipClaim.TXT):
        assert verdict(SHOP, OwnershipRecord(is_target=True), claim) is OwnershipVerdict.ENROL
    for former_holders in ((), ("b",)):
        target = OwnershipRecord(is_target=True, former_holders=former_holders)
        for name in (SHOP, "partner.test"):
            assert verdict(name, target, OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN


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
    assert verdict(SHOP, FREE, None) is OwnershipVerdict.UNPROVEN


def test_a_holder_needs_no_claim_for_its_other_product() -> None:
    for claim in (*OwnershipClaim, None):
        assert verdict(SHOP, OwnershipRecord(holder="a", former_holders=("b",)), claim) is OwnershipVerdict.ENROL


@pytest.mark.parametrize("claim", [OwnershipClaim.CNAME, OwnershipClaim.TXT])
def test_a_held_name_moves_with_a_proof_once_it_no_longer_leads_to_its_holder(claim: OwnershipClaim) -> None:
    held = OwnershipRecord(holder="b")
    assert verdict(SHOP, held, claim, against="b", to_holder=False) is OwnershipVerdict.MOVE
    assert verdict(SHOP, held, claim, against="b", to_holder=True) is OwnershipVerdict.LEADS_TO_HOLDER
    assert verdict(SHOP, held, claim, against="b", to_holder=None) is OwnershipVerdict.UNKNOWN


def test_a_held_name_never_moves_by_address() -> None:
    held = OwnershipRecord(holder="b", former_holders=("a",))
    for claim in (OwnershipClaim.ADDRESS, None):
        for name in (SHOP, ROOT):
            assert verdict(name, held, claim, against="b", to_holder=False) is OwnershipVerdict.HELD


def test_evidence_against_another_holder_moves_nothing() -> None:
    for against in (None, "c"):
        assert (
            verdict(SHOP, OwnershipRecord(holder="b"), OwnershipClaim.CNAME, against=against, to_holder=False)
            is OwnershipVerdict.UNKNOWN
        )


def test_own_names_are_the_hosts_of_our_settings() -> None:
    settings = load(
        {"FRONTAGE_POWER_TARGET": "Power.Frontage.Test.", "FRONTAGE_PUBLIC_URL": "https://API.frontage.test:8443/x"}
    )
    own = OwnNames.of(settings)
    assert own.names == {"power.frontage.test", "secure.frontage.localhost", "api.frontage.test"}
    assert OwnNames.of(load({})).names == {"power.frontage.localhost", "secure.frontage.localhost"}  # no addresses


def test_the_txt_record_names_the_application() -> None:
    assert txt_record(SHOP, "app_1") == ("_frontage.shop.customer.test", "application=app_1")


WILD = "*.customer.test"


@pytest.mark.parametrize("claim", [None, *OwnershipClaim])
@pytest.mark.parametrize("former", [(), ("a",)])
def test_only_a_delegation_takes_a_free_wildcard(claim: OwnershipClaim | None, former: tuple[str, ...]) -> None:
    is_delegated = claim is OwnershipClaim.DELEGATION
    expected = OwnershipVerdict.ENROL if is_delegated else OwnershipVerdict.UNDELEGATED
    assert verdict(WILD, OwnershipRecord(former_holders=former), claim) is expected


@pytest.mark.parametrize("name", ["*.frontage.test", "*.power.frontage.test", "*.test.test"])
def test_wildcards_of_our_own_names_and_above_them_are_never_enrolled(name: str) -> None:
    own = OwnNames(OWN.names | {"edge.eu.test.test"})
    standing, evidence = OwnershipRecord(), OwnershipEvidence(OwnershipClaim.DELEGATION)
    assert judge_claim(parse_enrollable(name), "a", standing, evidence, own) is OwnershipVerdict.RESERVED


def test_held_wildcard_moves_by_a_delegation_that_is_the_holders_no_more() -> None:
    held = OwnershipRecord(holder="b")
    for to_holder, expected in ((False, OwnershipVerdict.MOVE), (True, OwnershipVerdict.LEADS_TO_HOLDER)):
        found = verdict(WILD, held, OwnershipClaim.DELEGATION, against="b", to_holder=to_holder)
        assert found is expected
    assert verdict(WILD, held, None, against="b", to_holder=False) is OwnershipVerdict.HELD


def test_name_beneath_anothers_wildcard_is_taken_by_a_proof_alone() -> None:
    beneath = OwnershipRecord(former_holders=("a",), is_beneath_foreign_wildcard=True)
    assert verdict(SHOP, beneath, OwnershipClaim.ADDRESS) is OwnershipVerdict.UNPROVEN
    assert verdict(SHOP, beneath, OwnershipClaim.CNAME) is OwnershipVerdict.ENROL
