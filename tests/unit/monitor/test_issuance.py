"""Issuance's decisions: what a claimed order asks for, when it is renewed, what is taken from an issuer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from common.clock import SystemClock
from common.db.order_queue import Order, Validity
from monitor.certificates.internal import open_internal
from monitor.certificates.issuance import check_leaf, signing_request
from monitor.certificates.issuer import IssuanceFailed
from monitor.certificates.phases import Phases
from monitor.certificates.renewal import next_step, renewal_time
from tests.journal import MemoryJournal
from tests.tls_parts import keyring

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = Order("shop.customer.example", "app", "running", 7, 1, {}, 0.01, None)
AWAITED = Validity(NOW, NOW + timedelta(days=90), is_live=False)
LIVE = replace(AWAITED, is_live=True)


@pytest.mark.parametrize(
    ("order", "step"),
    [
        (ORDER, "issue"),
        (replace(ORDER, state="failed"), "issue"),
        (replace(ORDER, in_service=LIVE), "issue"),  # a renewal whose monitor died
        (replace(ORDER, state="failed", in_service=LIVE), "renew"),  # edges must hear that it runs again
        (replace(ORDER, state="issued", in_service=AWAITED), "await edges"),
        (replace(ORDER, state="issued", in_service=LIVE, kind="renewal"), "check renewal"),
        (replace(ORDER, state="issued", in_service=LIVE, kind="renewal", is_renewal_due=True), "renew"),
        (replace(ORDER, state="issued", in_service=LIVE, kind="manual"), "renew"),  # put off for a limit
        (replace(ORDER, state="issued"), "issue"),
    ],
)
def test_state_and_certificate_say_what_is_next(order: Order, step: str) -> None:
    assert next_step(order) == step


@given(st.integers(), st.timedeltas(min_value=timedelta(days=10), max_value=timedelta(days=400)))
def test_renewal_comes_at_two_thirds_of_any_lifetime_and_spreads(seed: int, lifetime: timedelta) -> None:
    at = renewal_time(NOW, NOW + lifetime, Random(seed))
    assert 0.65 <= (at - NOW) / lifetime <= 0.68


def test_phases_add_up_and_survive_another_attempt() -> None:
    phases = Phases(SystemClock(), {"issue": 1.0})
    phases.add("issue", 0.5)
    with pytest.raises(ZeroDivisionError), phases.timed("store"):
        _ = 1 / 0
    assert phases.as_seconds()["issue"] == 1.5
    assert list(phases.as_seconds()) == ["issue", "store"]


async def test_only_a_certificate_for_our_key_and_domain_is_taken(tmp_path: Path) -> None:
    issuer = open_internal(tmp_path, keyring(), SystemClock())
    key, other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issued = await issuer.issue(
        ORDER.domain, signing_request(ORDER.domain, key), Phases(SystemClock()), MemoryJournal()
    )
    chain = issued.chain
    check_leaf(chain, ORDER.domain, key)
    for text, domain, for_key in (
        (chain, ORDER.domain, other_key),
        (chain, "other.customer.example", key),
        ("no certificate", ORDER.domain, key),
        (chain[:200], ORDER.domain, key),
    ):
        with pytest.raises(IssuanceFailed):
            check_leaf(text, domain, for_key)
