"""Decides when a failing webhook endpoint is warned about and disabled.

Rules
    One that fails without interruption is warned about after three days and disabled after five, never within a day of
    the warning: a schedule of retries takes three days, so its owner has seen an event fail by then.
    One that answers 410 asks for it (RFC 9110 §15.5.11) and is disabled at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto

from common.db.webhook_endpoints import Endpoint

WARN_AFTER = timedelta(days=3)
DISABLE_AFTER = timedelta(days=5)
NOTICE = timedelta(days=1)


class EndpointVerdict(Enum):
    """What is done about a failing endpoint."""

    NO_ACTION = auto()
    WARN = auto()
    DISABLE = auto()


def judge_endpoint(endpoint: Endpoint, *, is_gone: bool, now: datetime) -> EndpointVerdict:
    """Decide what is done about an endpoint after a failure.

    `is_gone`: the endpoint answered 410.
    """
    if is_gone:
        return EndpointVerdict.DISABLE
    failing_for = now - (endpoint.failing_since or now)
    if endpoint.warned_at is None:
        return EndpointVerdict.WARN if failing_for >= WARN_AFTER else EndpointVerdict.NO_ACTION
    has_had_notice = now - endpoint.warned_at >= NOTICE
    return EndpointVerdict.DISABLE if failing_for >= DISABLE_AFTER and has_had_notice else EndpointVerdict.NO_ACTION


def disables_at(endpoint: Endpoint) -> datetime | None:
    """Return when the next failure disables an endpoint that was warned about, or None if none would."""
    if endpoint.failing_since is None or endpoint.warned_at is None or endpoint.disabled_at is not None:
        return None
    return max(endpoint.failing_since + DISABLE_AFTER, endpoint.warned_at + NOTICE)
