"""What answers of the zones' own servers prove, about a domain that application "b" holds and "a" claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from common.dns import Answer, Chain, Outcome, Pass
from common.dns.questions import follow_chain
from common.enrolment.delegations import Ask, Delegate
from common.enrolment.ownership import OwnershipClaim, OwnershipEvidence, Party, Target
from common.enrolment.ownership_evidence import find_evidence
from common.names import parse_domain
from common.records import RecordType

SHOP = parse_domain("shop.customer.test")
CNAME: tuple[str, RecordType] = (SHOP.text, "CNAME")
TXT: tuple[str, RecordType] = ("_frontage.shop.customer.test", "TXT")
A, B = Party("a", frozenset({"a.test"})), Party("b", frozenset({"b.test", "b-ssl.test"}))
HELD_SINCE = datetime(2026, 6, 1, tzinfo=UTC)
SET_AT = {"a.test": datetime(2026, 2, 1, tzinfo=UTC), "b.test": datetime(2026, 3, 1, tzinfo=UTC)}


class Zones:
    """Answers in place of the zones' servers, which are another test's."""

    def __init__(self, answers: dict[tuple[str, RecordType], Answer]) -> None:
        self._answers = answers
        self.authoritative = self

    async def ask(self, name: str, kind: RecordType) -> Answer:
        return self._answers.get((name, kind), Answer(Outcome.NO_DATA))

    async def follow(self, name: str, goals: frozenset[str]) -> Chain:
        return await follow_chain(self.ask, name, goals)


async def evidence(answers: dict[tuple[str, RecordType], Answer], **set_at: datetime) -> OwnershipEvidence:
    """`set_at`: when the target of the application was set, where it matters."""
    since = SET_AT | {f"{application_id}.test": at for application_id, at in set_at.items()}

    async def find_targets(names: Collection[str]) -> Sequence[Target]:
        owners = {name: party.application_id for party in (A, B) for name in party.cname_targets}
        targets = [Target(name, owners[name], None, since.get(name, HELD_SINCE)) for name in names if name in owners]
        return sorted(targets, key=lambda each: each.set_at)

    async def find_delegate(ask: Ask, domain: str) -> Delegate:
        answer = await ask(f"_acme-challenge.{domain}", "CNAME")
        return Delegate(answer.values[0].partition(".")[0] if answer.values else None, answer.outcome.is_known)

    return await find_evidence(
        cast("Pass", Zones(answers)), SHOP, A, B, HELD_SINCE, frozenset({"power.test"}), find_targets, find_delegate
    )


def values(*texts: str, is_disputed: bool = False) -> Answer:
    return Answer(Outcome.RECORDS, texts, is_disputed)


async def test_a_name_leads_to_its_holder_as_long_as_the_cnames_lead_through_its_target() -> None:
    assert await evidence({CNAME: values("a.test")}) == OwnershipEvidence(
        OwnershipClaim.CNAME, "b", leads_to_holder=False
    )
    assert await evidence({CNAME: values("b-ssl.test")}) == OwnershipEvidence(None, "b", leads_to_holder=True)
    through = {CNAME: values("b.test"), ("b.test", "CNAME"): values("a.test")}
    assert await evidence(through) == OwnershipEvidence(OwnershipClaim.CNAME, "b", leads_to_holder=True)
    alias = {CNAME: values("alias.test"), ("alias.test", "CNAME"): values("a.test")}
    assert (await evidence(alias)).claim is OwnershipClaim.CNAME


async def test_a_delegated_challenge_proves_the_name_and_keeps_it_for_its_holder() -> None:
    delegated: tuple[str, RecordType] = ("_acme-challenge.shop.customer.test", "CNAME")
    assert await evidence({delegated: values("a.acme.test")}) == OwnershipEvidence(
        OwnershipClaim.DELEGATION, "b", leads_to_holder=False
    )
    assert await evidence({CNAME: values("a.test"), delegated: values("b.acme.test")}) == OwnershipEvidence(
        OwnershipClaim.CNAME, "b", leads_to_holder=True
    )
    unasked = await evidence({CNAME: values("a.test"), delegated: Answer(Outcome.TIMEOUT)})
    assert unasked.leads_to_holder is None


async def test_a_target_that_the_holder_sets_on_a_claimants_way_keeps_no_name() -> None:
    through = {
        CNAME: values("b.test"),
        ("b.test", "CNAME"): values("a.test"),
        ("a.test", "CNAME"): values("power.test"),
    }
    later = datetime(2026, 7, 1, tzinfo=UTC)
    assert await evidence(through, b=later) == OwnershipEvidence(OwnershipClaim.CNAME, "b", leads_to_holder=False)
    assert (await evidence(through, b=later, a=datetime(2026, 8, 1, tzinfo=UTC))).leads_to_holder is True
    assert (await evidence({CNAME: values("b.test")}, b=later)).leads_to_holder is True  # moved to a new target of b


async def test_txt_records_name_applications() -> None:
    assert await evidence({TXT: values("application=a")}) == OwnershipEvidence(
        OwnershipClaim.TXT, "b", leads_to_holder=False
    )
    both = {TXT: values("application=a", "application=b")}
    assert await evidence(both) == OwnershipEvidence(OwnershipClaim.TXT, "b", leads_to_holder=True)
    for other in ("application=ab", "application=A", "a", " application=a", "application = a"):
        assert (await evidence({TXT: values(other)})).claim is None


@pytest.mark.parametrize("outcome", [Outcome.SERVER_FAILURE, Outcome.TIMEOUT])
async def test_what_cannot_be_asked_leaves_the_holder_undecided(outcome: Outcome) -> None:
    assert (await evidence({CNAME: values("a.test"), TXT: Answer(outcome)})).leads_to_holder is None
    assert (await evidence({CNAME: Answer(outcome), TXT: values("application=a")})).leads_to_holder is None
    held = await evidence({CNAME: values("b.test"), TXT: Answer(outcome)})
    assert held.leads_to_holder is True


async def test_servers_that_disagree_decide_nothing() -> None:
    for answers in (
        {CNAME: values("a.test", is_disputed=True)},
        {CNAME: values("a.test"), TXT: Answer(Outcome.NO_DATA, is_disputed=True)},
        {TXT: values("application=a", is_disputed=True)},
    ):
        assert (await evidence(answers)).leads_to_holder is None


async def test_cnames_in_a_circle_decide_nothing() -> None:
    circle = {CNAME: values("x.test"), ("x.test", "CNAME"): values(SHOP.text), TXT: values("application=a")}
    assert (await evidence(circle)).leads_to_holder is None
