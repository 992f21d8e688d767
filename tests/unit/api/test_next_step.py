"""The next step of a diagnosis: the sentence for each fault of a domain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.answers.diagnosis import diagnosis_answer
from api.services.diagnosis import Caa, Diagnosis, Dns, DomainHolding, Nodes, Ownership, SeenRecord
from api.services.next_step import next_step
from api.services.origin_state import OriginState
from common.caa import Authorization
from common.db.ca_ledger import LimitReached
from common.db.certificates import InService
from common.db.domains import Domain
from common.db.edge_nodes import SERVING, EdgeNode, UnreachedOrigin
from common.db.orders import OrderState
from common.db.own_certificates import OwnCertificate
from common.db.renewal_risks import Risk, RiskRecord
from common.dns import Outcome
from common.edge_probe import Reached
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict
from common.liveness import Reach
from common.names import parse_domain

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME = parse_domain("shop.customer.test")
TARGET = SeenRecord("CNAME", "apps.partner.test", "power.frontage.test")
POINTED = SeenRecord("CNAME", NAME.text, TARGET.host)
DNS = Dns(
    EligibilityFindings(OwnershipClaim.CNAME, None, Outcome.RECORDS),
    (POINTED,),
    (POINTED, TARGET),
    (TARGET,),
    (TARGET,),
    Reached.US,
)
FREE = Caa(Authorization(Outcome.NO_DATA), (), forbids=False)
DOMAIN = Domain(NAME.text, "secure", "app", "https://origin.test", (), "active", "live", None)
CERTIFICATE = InService("internal", NOW, NOW + timedelta(days=90), NOW, NOW)
ORDER = OrderState("issued", "renewal", 0, None, NOW, NOW + timedelta(days=60), {}, NOW, NOW, None, None, None)
FAILED = replace(
    ORDER, state="failed", last_error="the CA could not connect.", due_at=NOW + timedelta(hours=1), renew_at=None
)
HOLDING = DomainHolding((DOMAIN,), CERTIFICATE, ORDER, None)
NODES = Nodes(is_issuing=True, edges=Reach(1, ()))
ORIGIN = OriginState("https://origin.test", "ok")
WELL = Diagnosis(NAME, True, DNS, FREE, HOLDING, NODES, ORIGIN)


def sentence(diagnosis: Diagnosis) -> str:
    return f"{next_step(diagnosis, NOW).state}: {next_step(diagnosis, NOW).words}"


def with_findings(pointed: bool, unresolved: Outcome | None, step_one: Outcome, *found: SeenRecord) -> Diagnosis:
    return replace(
        WELL,
        dns=replace(
            DNS,
            findings=EligibilityFindings(OwnershipClaim.CNAME if pointed else None, unresolved, step_one),
            found=found,
        ),
    )


def failing(**changes: Any) -> Diagnosis:
    return replace(WELL, holding=DomainHolding((DOMAIN,), None, FAILED, None), **changes)


def test_when_all_is_well_there_is_nothing_to_do() -> None:
    assert sentence(WELL) == (
        "ok: Nothing to do: the domain is served, and its certificate renews itself from 2027-01-20 12:00 UTC on."
    )


def test_a_renewal_that_waits_is_named_with_its_reason_and_its_time() -> None:
    waiting = replace(ORDER, finished_at=None, last_error="the CA's limit is reached", due_at=NOW + timedelta(hours=2))
    assert sentence(replace(WELL, holding=replace(HOLDING, order=waiting))) == (
        "ok: Nothing to do: the domain is served. The renewal of its certificate waits until 2026-11-21 14:00 UTC:"
        " the CA's limit is reached."
    )


def test_an_origin_that_edges_cannot_reach_is_not_ok() -> None:
    unreached = UnreachedOrigin(EdgeNode("0123456789", "edge-a", 1, SERVING, NOW), "timeout")
    assert sentence(replace(WELL, unreached=(unreached,))) == (
        "action needed: Visitors may get an error: the origin https://origin.test could not be reached from every edge"
        " in the last minute: edge 01234567 had no answer in time. Let every server and firewall of the origin accept"
        " connections from the edges. If that is so already, the operator has to look at the network of the edges"
        " named."
    )
    invalid = sentence(replace(WELL, unreached=(replace(unreached, fault="not_http"),)))
    assert "did not answer every request in the last minute as it should: edge 01234567" in invalid
    assert "origin_invalid" in invalid
    assert sentence(replace(WELL, unreached=None)).startswith("unknown: ")


def test_an_edge_that_reports_no_more_is_named_and_what_it_serves_is_unknown() -> None:
    lost = EdgeNode("0123456789", "edge-a", 1, SERVING, NOW)
    assert sentence(replace(WELL, nodes=Nodes(is_issuing=True, edges=Reach(1, (), (lost,), (lost,))))) == (
        "unknown: Not every edge may serve the domain as it is now: 01234567 has not reported since 2026-11-21 12:00"
        " UTC, and may serve what it knew then. The operator has to look at it: `frontage status` names its machine."
    )
    long_gone = replace(WELL, nodes=Nodes(is_issuing=True, edges=Reach(1, (), (lost,))))
    assert sentence(long_gone) == sentence(WELL)
    shown = diagnosis_answer(long_gone, next_step(long_gone, NOW), NOW)["edges"]
    assert shown["status"] == "ok"
    assert [each["edge"] for each in shown["lapsed"]] == ["01234567"]


def test_a_name_that_is_not_there_is_to_be_created() -> None:
    assert sentence(with_findings(False, Outcome.NO_NAME, Outcome.RECORDS)) == (
        "action needed: Create the record CNAME shop.customer.test apps.partner.test:"
        " shop.customer.test has no DNS record yet."
    )


def test_a_name_without_an_address_gets_one_beside_its_other_records() -> None:
    assert sentence(with_findings(False, None, Outcome.RECORDS)) == (
        "action needed: Create the record CNAME shop.customer.test apps.partner.test:"
        " shop.customer.test leads nowhere yet."
    )


def test_a_name_that_leads_elsewhere_is_to_be_changed() -> None:
    elsewhere = SeenRecord("A", NAME.text, "192.0.2.99")
    assert sentence(with_findings(False, None, Outcome.RECORDS, elsewhere)) == (
        "action needed: Change the DNS of shop.customer.test to the record CNAME shop.customer.test apps.partner.test:"
        " it leads to 192.0.2.99."
    )


def test_step_one_comes_before_step_two() -> None:
    assert "Point the cname target apps.partner.test to power.frontage.test" in sentence(
        with_findings(False, None, Outcome.NO_DATA)
    )


def test_a_cname_target_is_never_to_lead_to_itself() -> None:
    dns = replace(
        DNS, findings=EligibilityFindings(None, None, Outcome.RECORDS), expected=(replace(POINTED, value=NAME.text),)
    )
    assert sentence(replace(WELL, dns=dns)).endswith(
        "shop.customer.test is the cname target itself, and is not served."
    )


def test_what_could_not_be_asked_is_never_told_as_wrong() -> None:
    for diagnosis in (
        with_findings(False, Outcome.SERVER_FAILURE, Outcome.RECORDS),
        with_findings(True, None, Outcome.TIMEOUT),
        replace(WELL, dns=None),
        replace(WELL, holding=None),
        replace(WELL, dns=None, caa=None, holding=None),
    ):
        assert sentence(diagnosis).startswith("unknown: ")


def owned(verdict: OwnershipVerdict, claim: OwnershipClaim | None = None, **changes: Any) -> Diagnosis:
    ownership = Ownership(verdict, claim, "app", TARGET.host)
    return replace(WELL, holding=DomainHolding((), None, None, None), ownership=ownership, **changes)


def test_a_name_that_another_application_holds_is_never_to_be_posted_at_once() -> None:
    assert sentence(owned(OwnershipVerdict.HELD)) == (
        "action needed: Another application holds shop.customer.test. To move it here: point shop.customer.test to"
        " apps.partner.test by CNAME, or create the TXT record _frontage.shop.customer.test with the value"
        " application=app, remove the CNAME to the other application's target and any TXT record at"
        " _frontage.shop.customer.test that names another application, then POST again."
    )
    assert sentence(owned(OwnershipVerdict.LEADS_TO_HOLDER)).startswith(
        "action needed: Another application holds shop.customer.test, and the DNS still leads to it: remove"
    )
    assert sentence(owned(OwnershipVerdict.UNKNOWN)).startswith("unknown: Another application holds")
    for verdict in (
        OwnershipVerdict.HELD,
        OwnershipVerdict.LEADS_TO_HOLDER,
        OwnershipVerdict.UNKNOWN,
        OwnershipVerdict.RESERVED,
        OwnershipVerdict.UNPROVEN,
    ):
        assert "Enrol the domain" not in sentence(owned(verdict))


def test_a_root_that_another_application_holds_is_proven_by_txt_alone() -> None:
    words = sentence(owned(OwnershipVerdict.HELD, name=parse_domain("customer.test")))
    assert "To move it here: create the TXT record _frontage.customer.test with the value application=app" in words
    assert "CNAME" not in words


def test_a_name_that_moves_is_to_be_enrolled() -> None:
    assert sentence(owned(OwnershipVerdict.MOVE, OwnershipClaim.CNAME)) == (
        "action needed: The DNS is right. Enrol the domain: POST /power or POST /ssl,"
        " which moves it here from another application."
    )


def test_a_name_that_leads_here_without_a_proof_needs_one() -> None:
    past_target = replace(DNS, findings=EligibilityFindings(None, None, Outcome.RECORDS, bypasses_target=True))
    for dns in (past_target, replace(DNS, findings=EligibilityFindings(OwnershipClaim.ADDRESS, None, Outcome.RECORDS))):
        assert sentence(owned(OwnershipVerdict.UNPROVEN, dns=dns)) == (
            "action needed: Point shop.customer.test to apps.partner.test by CNAME, or create the TXT record"
            " _frontage.shop.customer.test with the value application=app: shop.customer.test leads here, and nothing"
            " shows whose it is."
        )


def test_a_name_of_ours_is_never_to_be_enrolled() -> None:
    assert sentence(owned(OwnershipVerdict.RESERVED)) == (
        "action needed: Ask about a customer's domain: shop.customer.test is a name of this service, or your"
        " application's cname target, and never enrolled."
    )


def test_a_pointed_domain_is_to_be_enrolled() -> None:
    unowned = replace(WELL, holding=DomainHolding((), None, None, None))
    assert sentence(unowned) == "action needed: The DNS is right. Enrol the domain: POST /power or POST /ssl."
    root = replace(unowned, name=parse_domain("customer.test"))
    assert sentence(root) == "action needed: The DNS is right. Enrol the domain: POST /ssl."


def test_a_certificate_on_its_way_is_waited_for() -> None:
    running = replace(ORDER, state="running")
    issued = replace(CERTIFICATE, live_at=None)
    for holding in (DomainHolding((DOMAIN,), None, running, None), DomainHolding((DOMAIN,), issued, ORDER, None)):
        assert sentence(replace(WELL, holding=holding)) == "waiting: Wait a moment: the certificate is on its way."


def test_a_failure_is_told_in_the_authoritys_words_and_when_it_is_tried_again() -> None:
    assert sentence(failing()) == (
        "action needed: The last attempt at a certificate failed: the CA could not connect."
        " The next attempt is at 2026-11-21 13:00 UTC; PUT /ssl tries at once."
    )


def test_power_alone_has_nothing_to_try_at_once() -> None:
    powered = replace(DOMAIN, product="power")
    assert "PUT" not in sentence(replace(WELL, holding=DomainHolding((powered,), None, FAILED, None)))


def test_caa_that_forbids_is_named_and_no_matter_to_our_own_ca() -> None:
    authorization = Authorization(Outcome.RECORDS, "customer.test", ("0 issue other.example",))
    forbidding = Caa(authorization, ("other.example",), forbids=True)
    assert "Change the CAA records of customer.test: they let other.example issue" in sentence(failing(caa=forbidding))
    assert "CAA" not in sentence(failing(caa=forbidding, uses_acme=False))


def test_a_challenge_path_that_leads_elsewhere_is_named() -> None:
    assert "(port 80) reach us: they reach another server" in sentence(
        failing(dns=replace(DNS, reached=Reached.ANOTHER))
    )


def test_a_domain_that_is_back_is_waited_for_until_it_is_noticed() -> None:
    departed = replace(DOMAIN, departed_at=NOW, status="inactive")
    order = replace(ORDER, due_at=NOW + timedelta(hours=1))
    assert sentence(replace(WELL, holding=DomainHolding((departed,), CERTIFICATE, order, None))) == (
        "waiting: Wait: the DNS had led elsewhere, and leads here again; it is looked at again at 2026-11-21 13:00 UTC."
    )


def test_a_limit_of_the_authority_is_waited_for() -> None:
    full = LimitReached("certificates_per_exact_set", 5, NOW + timedelta(hours=2))
    holding = DomainHolding((DOMAIN,), None, FAILED, full)
    assert sentence(replace(WELL, holding=holding)).endswith("no room for an order until 2026-11-21 14:00 UTC.")


def test_a_renewal_that_fails_is_told_while_the_old_certificate_serves() -> None:
    failing_renewal = replace(WELL, holding=DomainHolding((DOMAIN,), CERTIFICATE, FAILED, None))
    assert "The last attempt at a certificate failed" in sentence(failing_renewal)


def test_an_edge_that_serves_the_certificate_of_before_is_named() -> None:
    edges = [EdgeNode(f"{number}123456789", "edge", 1, SERVING, NOW) for number in range(2)]
    old = replace(WELL, holding=replace(HOLDING, serial="4f", served_at=((edges[0], True), (edges[1], False))))
    assert sentence(old) == (
        "action needed: 1 of 2 edges may still serve its certificate of before: 11234567. The operator has to look at"
        " it: `frontage status` names its machine."
    )
    shown = diagnosis_answer(old, next_step(old, NOW), NOW)["edges"]
    assert shown["status"] == "ok"
    assert [(each["edge"], each["serial"]) for each in shown["certificates"]] == [
        ("01234567", "4f"),
        ("11234567", None),
    ]


def test_a_renewal_at_risk_is_told_once_it_counts() -> None:
    record = RiskRecord("AAAA", NAME.text, "2001:db8::1")
    risk = Risk("aaaa_elsewhere", "Remove the AAAA record.", "domain_owner", record)
    seen_once = replace(WELL, holding=replace(HOLDING, order=replace(ORDER, risk=risk)))
    assert sentence(seen_once) == sentence(WELL)
    counts = replace(WELL, holding=replace(HOLDING, order=replace(ORDER, risk=replace(risk, seen=2))))
    assert sentence(counts) == (
        "action needed: The next renewal would fail. Remove the AAAA record. The certificate ends 2027-02-19 12:00 UTC."
    )
    own = OwnCertificate(NAME.text, "app", "CA", "4f", (NAME.text,), NOW, NOW + timedelta(days=9), NOW)
    assert counts.holding is not None
    assert sentence(replace(counts, holding=replace(counts.holding, own=own))) == (
        "action needed: Our certificate, which takes over from yours, could not be renewed. Remove the AAAA record."
        " Yours ends 2026-11-30 12:00 UTC."
    )
    lasting = replace(own, not_after=NOW + timedelta(days=60))
    assert sentence(replace(counts, holding=replace(counts.holding, own=lasting))).startswith("ok: Nothing to do")
    order = diagnosis_answer(counts, next_step(counts, NOW), NOW)["order"]
    assert order is not None
    assert order["status"] == "issued"
    assert order["renewal_risk"] == {
        "code": "aaaa_elsewhere",
        "action": "Remove the AAAA record.",
        "who": "domain_owner",
        "record": {"type": "AAAA", "host": NAME.text, "value": "2001:db8::1"},
    }


def test_an_own_certificate_is_told_with_what_stands_by() -> None:
    own = OwnCertificate(NAME.text, "app", "CA", "4f", (NAME.text,), NOW, NOW + timedelta(days=60), NOW)
    assert sentence(replace(WELL, holding=replace(HOLDING, own=own))) == (
        "ok: Nothing to do: the domain is served with your own certificate until 2027-01-20 12:00 UTC. Ours stands by,"
        " and takes over on its last day."
    )
    alone = replace(HOLDING, certificate=None, order=FAILED, own=own)
    assert sentence(replace(WELL, holding=alone)) == (
        "ok: Nothing to do: the domain is served with your own certificate until 2027-01-20 12:00 UTC. Bring the next"
        " one by then: ours, which would take over, could not be issued yet: the last attempt failed, the CA could not"
        " connect."
    )
    ending = replace(alone, own=replace(own, not_after=NOW + timedelta(days=9)))
    assert sentence(replace(WELL, holding=ending)).startswith("action needed: The last attempt at a certificate failed")
