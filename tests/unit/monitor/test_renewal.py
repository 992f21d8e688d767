"""When certificates are renewed, and what comes before what."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.db.order_queue import Order, Validity
from common.dns import Outcome
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.ownership import OwnershipClaim
from monitor.certificates.dns_moved_away import Lead, lead_from
from monitor.certificates.issuer import RenewalWindow
from monitor.certificates.renewal import (
    needs_dns_check,
    next_check_seconds,
    order_ways,
    renewal_time,
    slot_pause_seconds,
    urgency,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = Order("shop.customer.example", "app", "running", 7, 1, {}, 0.01, None)
FRESH = Validity(NOW, NOW + timedelta(days=90), is_live=True)
WINDOW = RenewalWindow(NOW + timedelta(days=5), NOW + timedelta(days=7), ask_again_seconds=21600)


@given(st.integers())
def test_short_lived_certificate_is_renewed_at_half(seed: int) -> None:
    at = renewal_time(NOW, NOW + timedelta(days=6), Random(seed))
    assert 0.48 <= (at - NOW) / timedelta(days=6) <= 0.52


@pytest.mark.parametrize(
    ("attempt", "leads_here", "is_delegated", "ways"),
    [
        (1, True, False, ("http-01",)),
        (1, True, True, ("dns-01", "http-01")),
        (2, True, True, ("http-01", "dns-01")),
        (1, False, True, ("dns-01",)),
        (2, False, True, ("dns-01",)),
    ],
)
def test_delegated_domain_is_validated_in_its_zone_and_after_a_failure_in_the_other_way(
    attempt: int, leads_here: bool, is_delegated: bool, ways: tuple[str, ...]
) -> None:
    order = replace(ORDER, attempts=attempt)
    assert order_ways(order, leads_here=leads_here, is_delegated=is_delegated) == ways


@given(st.integers())
def test_issuers_window_wins_and_its_moments_spread(seed: int) -> None:
    at = renewal_time(NOW, NOW + timedelta(days=90), Random(seed), WINDOW)
    assert WINDOW.start <= at <= WINDOW.end


def test_moments_in_a_window_differ() -> None:
    assert len({renewal_time(NOW, NOW + timedelta(days=90), Random(seed), WINDOW) for seed in range(50)}) == 50


def test_moment_is_kept_until_the_window_moves() -> None:
    chosen = WINDOW.start + timedelta(hours=1)
    assert renewal_time(NOW, NOW + timedelta(days=90), Random(1), WINDOW, chosen) == chosen
    moved = replace(WINDOW, start=NOW - timedelta(days=2), end=NOW - timedelta(days=1))
    assert renewal_time(NOW, NOW + timedelta(days=90), Random(1), moved, chosen) < NOW
    assert renewal_time(NOW, NOW + timedelta(days=90), Random(1), None, chosen) == chosen  # no word is no news


def test_window_that_makes_no_sense_is_none() -> None:
    wrong = replace(WINDOW, end=WINDOW.start - timedelta(days=1))
    assert (renewal_time(NOW, NOW + timedelta(days=90), Random(1), wrong) - NOW) > timedelta(days=50)


def test_issuer_is_asked_as_often_as_it_says_but_daily_and_not_all_the_time() -> None:
    assert 0.8 * 21600 <= next_check_seconds(WINDOW, Random(1)) <= 21600
    assert next_check_seconds(replace(WINDOW, ask_again_seconds=1.0), Random(1)) >= 480
    assert next_check_seconds(replace(WINDOW, ask_again_seconds=1e9), Random(1)) <= 86400
    assert next_check_seconds(None, Random(1)) <= 86400
    assert 0.8 * 3600 <= next_check_seconds(None, Random(1), soon=True) <= 3600


@pytest.mark.parametrize(
    ("order", "days_later", "expected"),
    [
        (ORDER, 0, "new"),
        (replace(ORDER, kind="renewal", in_service=FRESH), 60, "renewal"),
        (replace(ORDER, kind="renewal", in_service=FRESH), 76, "expiring"),
        (replace(ORDER, kind="renewal", in_service=FRESH), 100, "expiring"),
        (replace(ORDER, kind="manual", in_service=FRESH), 10, "manual"),
        (replace(ORDER, kind="manual", in_service=FRESH), 80, "expiring"),
        (replace(ORDER, kind="replacement", in_service=FRESH), 1, "expiring"),
    ],
)
def test_urgency_follows_what_is_at_stake(order: Order, days_later: int, expected: str) -> None:
    assert urgency(order, NOW + timedelta(days=days_later)) == expected


@given(st.integers())
def test_pause_for_a_slot_is_short_beside_what_is_left_of_the_certificate(seed: int) -> None:
    ends = Validity(NOW - timedelta(minutes=1), NOW + timedelta(minutes=1), is_live=True)
    assert 0 <= slot_pause_seconds(replace(ORDER, kind="renewal", in_service=ends), NOW, Random(seed)) <= 10
    assert slot_pause_seconds(replace(ORDER, kind="renewal", in_service=FRESH), NOW, Random(seed)) >= 10


def test_new_domain_is_taken_at_the_apis_word_once() -> None:
    assert not needs_dns_check(ORDER, "issue")
    assert needs_dns_check(replace(ORDER, attempts=2), "issue")
    assert needs_dns_check(replace(ORDER, kind="renewal"), "renew")
    assert not needs_dns_check(replace(ORDER, attempts=2), "await edges")


RECORDS = Outcome.RECORDS


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (EligibilityFindings(OwnershipClaim.CNAME, None, RECORDS), "here"),
        (EligibilityFindings(None, None, RECORDS), "elsewhere"),
        (EligibilityFindings(None, None, RECORDS, bypasses_target=True), "past its target"),
        (EligibilityFindings(None, Outcome.NO_NAME, RECORDS), "elsewhere"),  # the name is gone
        (EligibilityFindings(None, Outcome.SERVER_FAILURE, RECORDS), None),
        (EligibilityFindings(None, Outcome.TIMEOUT, RECORDS), None),
        (EligibilityFindings(OwnershipClaim.CNAME, None, Outcome.TIMEOUT), None),
        (
            EligibilityFindings(OwnershipClaim.CNAME, None, Outcome.NO_DATA),
            "elsewhere",
        ),  # the partner's target leads elsewhere
    ],
)
def test_dns_that_cannot_be_asked_has_not_moved_away(findings: EligibilityFindings, expected: Lead | None) -> None:
    assert lead_from(findings) == expected


def test_six_day_certificates_are_renewed_in_time_year_in_year_out() -> None:
    """By the fraction alone, then by ARI; the CA is away for two days before each renewal succeeds."""
    random, lifetime = Random(1), timedelta(days=6)
    for window_of in (lambda _: None, lambda at: RenewalWindow(at + lifetime / 2, at + lifetime * 0.55, 21_600)):
        now, ends = NOW, NOW + lifetime
        for _ in range(120):
            at = renewal_time(now, ends, random, window_of(now))
            assert now + timedelta(days=2.8) <= at <= ends - timedelta(days=2.5)
            served = replace(FRESH, not_before=now, not_after=ends)
            assert urgency(replace(ORDER, kind="renewal", in_service=served), at) == "renewal"
            assert urgency(replace(ORDER, kind="renewal", in_service=served), ends - timedelta(hours=23)) == "expiring"
            now = at + timedelta(days=2)
            assert now < ends
            ends = now + lifetime
