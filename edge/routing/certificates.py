"""What a domain's certificate state decides: who answers HTTP-01 challenges, and when HTTPS cannot work yet.

An HTTP-01 challenge belongs to the edge while the domain's certificate is being issued, else to the origin:

    enrolled, no certificate, or an order is running    the edge answers
    enrolled, certificate, no order                     the origin answers: it may have a CA of its own
    not enrolled                                        refused like any other path
    this node is cut off from Postgres                  the edge answers: it cannot know new orders and domains
"""

from __future__ import annotations

from typing import NamedTuple


class CertificateState(NamedTuple):
    """What the replica holds of one domain's certificate."""

    has_certificate: bool
    has_order: bool
    hold_until: float  # unix seconds until which handshakes wait for the order; 0.0 without a readable order


def answers_challenge(state: CertificateState, *, is_enrolled: bool, is_cut_off: bool) -> bool:
    """Return whether the edge answers an HTTP-01 challenge for this domain itself."""
    return is_cut_off or (state.has_order if state.has_certificate else is_enrolled)


def is_awaiting_certificate(state: CertificateState, now: float) -> bool:
    """Return whether HTTPS fails at this domain: no certificate, and handshakes no longer wait for one.

    While handshakes wait (`edge.tls.shared`), a client redirected to HTTPS is only delayed. `now` in unix seconds.
    """
    return not state.has_certificate and state.hold_until <= now
