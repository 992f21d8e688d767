"""Renewal, decided: what a claimed order asks for, when a certificate is renewed, and what comes before what.

Rules
    A certificate is renewed within the window its issuer suggests (RFC 9773 §4.2), else when a part of its lifetime is
    over: two thirds, or half where it is short. Never so many days before its end: lifetimes change.
    The moment is chosen once, at random, and kept while it lies in the window: what was issued together is not renewed
    together.
    A renewal is routine until little of the lifetime is left; then it comes before new domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Literal, TypeAlias

from common.db.ca_ledger import Urgency
from common.db.order_queue import Order, Validity
from monitor.certificates.issuer import ChallengeKind, RenewalWindow

Step: TypeAlias = Literal["issue", "await edges", "check renewal", "renew"]

RENEWAL_FRACTION = 2 / 3
SHORT_LIVED = timedelta(days=10)
SHORT_LIVED_FRACTION = 1 / 2
_SPREAD = 0.01  # of the lifetime
_EXPIRING_FRACTION = 1 / 6  # of the lifetime: 15 of 90 days, 1 of 6

_LONGEST_CHECK_SECONDS = 24 * 3600.0
_SHORTEST_CHECK_SECONDS = 600.0
_SOON_SECONDS = 3600.0
_SLOT_PAUSE_SECONDS: dict[Urgency, tuple[float, float]] = {
    "compromised": (0.0, 1.0),
    "expiring": (1.0, 3.0),
    "new": (2.0, 10.0),
    "renewal": (10.0, 120.0),
    "manual": (10.0, 120.0),
}


def next_step(order: Order) -> Step:
    """Return the next step of a claimed order (the table is in `common.db.orders`)."""
    if order.in_service is None or order.state == "running":
        return "issue"
    if order.state == "failed":
        return "renew"
    if not order.in_service.is_live:
        return "await edges"
    return "renew" if order.kind != "renewal" or order.is_renewal_due else "check renewal"


def needs_dns_check(order: Order, step: Step) -> bool:
    """Return whether to check first that the domain's DNS leads here.

    For a new order the API has just done so.
    """
    return step != "await edges" and (order.is_recheck or not (order.kind == "new" and order.attempts == 1))


def order_ways(order: Order, *, leads_here: bool, is_delegated: bool) -> Sequence[ChallengeKind]:
    """Return the ways in which a CA can validate the order's domain, the one to try first first.

    After a failed attempt the other way is first. A wildcard is validated over DNS alone.
    """
    if order.is_wildcard:
        return ("dns-01",) if is_delegated else ()
    if not is_delegated:
        return ("http-01",)
    if not leads_here:
        return ("dns-01",)
    return ("dns-01", "http-01") if order.attempts % 2 else ("http-01", "dns-01")


def renewal_time(
    not_before: datetime,
    not_after: datetime,
    random: Random,
    window: RenewalWindow | None = None,
    chosen: datetime | None = None,
) -> datetime:
    """Return when to renew, which may be past. `chosen` is the time chosen before."""
    if window is None or window.end < window.start:
        lifetime = not_after - not_before
        if chosen is not None and not_before <= chosen <= not_after:
            return chosen
        fraction = SHORT_LIVED_FRACTION if lifetime < SHORT_LIVED else RENEWAL_FRACTION
        return not_before + lifetime * (fraction + random.uniform(-_SPREAD, _SPREAD))
    if chosen is not None and window.start <= chosen <= window.end:
        return chosen
    return window.start + (window.end - window.start) * random.uniform(0.0, 1.0)


def next_check_seconds(window: RenewalWindow | None, random: Random, *, soon: bool = False) -> float:
    """Return the pause before the issuer and the DNS are asked again: as the issuer wishes, but once a day at least.

    `soon`: once an hour at least, because the domain's DNS is awaited or a risk was found only once.
    """
    asked = _LONGEST_CHECK_SECONDS if window is None else window.ask_again_seconds
    longest = _SOON_SECONDS if soon else _LONGEST_CHECK_SECONDS
    return min(max(asked, _SHORTEST_CHECK_SECONDS), longest) * random.uniform(0.8, 1.0)


def urgency(order: Order, now: datetime) -> Urgency:
    """Return the urgency by which the order takes its share of a CA's limits (`common.db.ca_ledger.SHARES`)."""
    if order.in_service is not None and order.in_service.is_compromised:
        return "compromised"
    served = order.in_service
    if order.kind == "replacement" or (served is not None and (served.is_to_replace or is_expiring(served, now))):
        return "expiring"
    if order.in_service is None:
        return "new"
    return "manual" if order.kind == "manual" else "renewal"


def is_expiring(valid: Validity, now: datetime) -> bool:
    """Return whether little of the certificate's lifetime is left."""
    return valid.not_after - now < (valid.not_after - valid.not_before) * _EXPIRING_FRACTION


def slot_pause_seconds(order: Order, now: datetime, random: Random) -> float:
    """Return the random pause after a slot is free: many wait for the same one, and the urgent come first.

    It is short beside what is left of the certificate in service, whatever its lifetime.
    """
    pause = random.uniform(*_SLOT_PAUSE_SECONDS[urgency(order, now)])
    if order.in_service is None:
        return pause
    left = (order.in_service.not_after - now).total_seconds()
    return min(pause, max(left, 0.0) * _EXPIRING_FRACTION)
