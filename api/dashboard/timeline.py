"""The life of a domain's certificate as steps of a timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from api.dashboard import words
from common.db.certificates import InService
from common.db.orders import OrderState

State: TypeAlias = Literal["done", "now", "failed", "later"]

_PHASES = {
    "checks": "DNS and CAA checked",
    "order": "Order placed at the CA",
    "validation": "Validated by the CA",
}
"""The steps of an order that a domain's owner can do something about, in order; others are ours."""
_KINDS = {
    "new": "Ordered",
    "renewal": "Renewal",
    "manual": "Renewal, asked for",
    "replacement": "Replacement of a revoked certificate",
}


class TimelineStep(NamedTuple):
    """A step of an order as a page shows it."""

    title: str
    state: State
    when: str = ""
    more: str = ""


def steps(certificate: InService | None, order: OrderState | None, now: datetime) -> list[TimelineStep]:
    """Oldest first: asked for, each phase with the time it took, live, and what comes next."""
    found: list[TimelineStep] = []
    if order is not None:
        found.append(TimelineStep(_KINDS[order.kind], "done", words.ago(order.requested_at, now)))
        found += [
            TimelineStep(words_of, "done", words.seconds(order.phases[name]))
            for name, words_of in _PHASES.items()
            if name in order.phases
        ]
        if order.state == "running" and order.waits_until(now) is None:
            found.append(
                TimelineStep("Being issued", "now", f"attempt {max(1, order.attempts)}", order.last_error or "")
            )
        if order.state == "failed":
            again = f"tried again {words.ago(order.due_at, now)}" if order.due_at else ""
            found.append(TimelineStep("Issuance fails", "failed", again, order.last_error or ""))
    if certificate is not None:
        found.append(TimelineStep("Issued", "done", words.ago(certificate.issued_at, now)))
        if certificate.live_at is None:
            found.append(TimelineStep("Waiting for the edges to serve it", "now"))
        elif certificate.live_at >= certificate.issued_at:
            found.append(TimelineStep("Live on every edge", "done", words.ago(certificate.live_at, now)))
    found += _next(order, now)
    if certificate is not None:
        expired = certificate.not_after <= now
        title = "Expired" if expired else "Expires"
        found.append(TimelineStep(title, "failed" if expired else "later", words.ago(certificate.not_after, now)))
    return found


def _next(order: OrderState | None, now: datetime) -> list[TimelineStep]:
    """Return what the order waits for, or when it renews."""
    if order is None or order.state == "failed":  # which has its step already
        return []
    if (until := order.waits_until(now)) is not None:
        more = f"{words.sentence(order.last_error or '')} It goes on at {words.moment(until)}."
        return [TimelineStep("Waits", "now", words.ago(until, now), more)]
    if order.renew_at is not None and order.state == "issued":
        return [TimelineStep("Renews by itself", "later", words.ago(order.renew_at, now))]
    return []
