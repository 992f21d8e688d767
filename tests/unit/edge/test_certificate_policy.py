"""Who answers an HTTP-01 challenge, and when a redirect to HTTPS would lead into a failing handshake."""

from __future__ import annotations

import pytest

from edge.replica.certificates import read_certificate_state, read_thumbprint
from edge.routing.certificates import CertificateState, answers_challenge, is_awaiting_certificate
from tests.component.peers import MemoryReplica

DOMAIN = "shop.example"


@pytest.mark.parametrize(
    ("has_certificate", "has_order", "is_enrolled", "is_cut_off", "expected"),
    [
        (False, False, True, False, True),
        (False, True, True, False, True),
        (True, True, True, False, True),
        (True, False, True, False, False),
        (False, False, False, False, False),
        (True, False, True, True, True),
        (False, False, False, True, True),
    ],
)
def test_the_edge_answers_challenges_while_a_certificate_is_being_issued(
    has_certificate: bool, has_order: bool, is_enrolled: bool, is_cut_off: bool, expected: bool
) -> None:
    state = CertificateState(has_certificate, has_order, hold_until=0.0)
    assert answers_challenge(state, is_enrolled=is_enrolled, is_cut_off=is_cut_off) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (CertificateState(True, False, 0.0), False),
        (CertificateState(False, True, 101.0), False),
        (CertificateState(False, True, 100.0), True),
        (CertificateState(False, False, 0.0), True),
    ],
)
def test_https_fails_without_a_certificate_once_handshakes_no_longer_wait(
    state: CertificateState, expected: bool
) -> None:
    assert is_awaiting_certificate(state, 100.0) is expected


def test_state_is_read_from_the_replica() -> None:
    replica = MemoryReplica()
    assert read_certificate_state(replica, DOMAIN) == CertificateState(False, False, 0.0)
    replica.records["certificate", DOMAIN] = {}
    replica.records["order", DOMAIN] = {"hold_until": 5.0}
    assert read_certificate_state(replica, DOMAIN) == CertificateState(True, True, 5.0)
    replica.records["order", DOMAIN] = {"hold_until": "soon"}
    assert read_certificate_state(replica, DOMAIN) == CertificateState(True, True, 0.0)


def test_unreadable_account_key_has_no_thumbprint() -> None:
    replica = MemoryReplica()
    assert read_thumbprint(replica) is None
    replica.records["acme_key", "current"] = {"thumbprint": "not base64url!"}
    assert read_thumbprint(replica) is None
    replica.records["acme_key", "current"] = {"thumbprint": "AbC_-9"}
    assert read_thumbprint(replica) == b"AbC_-9"
