"""How far the CA's orders have come: what waits for a limit, what was ordered lately, and when all of it is ordered.

Owns no table. An estimate, for people: it takes for granted that the limit of the account's orders is what is waited
for, that all that waits is routine, and that nothing else is ordered meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.db import ca_ledger
from common.db.ca_ledger import HOUR_SECONDS, WAITS_FOR_LIMIT, Limits, share_of
from common.db.session import Connection

MOST_COUNTED = 100_000
_LAST_ERROR_BOUNDS = (WAITS_FOR_LIMIT.rstrip(": "), WAITS_FOR_LIMIT.rstrip("y: ") + "z")
"""The texts between which `WAITS_FOR_LIMIT` lies in every collation, so that an index finds it."""
_WINDOW_HOURS = ca_ledger.ACCOUNT_WINDOW_SECONDS / HOUR_SECONDS


@dataclass(frozen=True, slots=True)
class IssuanceProgress:
    """The orders that wait, and an estimate of when all are ordered.

    `waiting`: orders that wait for a limit of the CA, at most `MOST_COUNTED`. `an_hour`: how many routine orders the
    limits allow. `ends_at`: when the last of those that wait is ordered, about; None where nothing waits.
    """

    waiting: int
    due: int
    ordered_last_hour: int
    ordered_last_day: int
    an_hour: int
    ends_at: datetime | None

    @property
    def notice(self) -> str | None:
        """Return a sentence for operators; None where nothing waits."""
        if self.ends_at is None:
            return None
        return (
            f"{self.waiting:,} certificate orders wait for limits of the CA: at {self.an_hour} an hour the last is"
            f" ordered at about {self.ends_at:%Y-%m-%d %H:%M} UTC."
        )


async def read_progress(connection: Connection, limits: Limits) -> IssuanceProgress:
    """Count the orders that wait and estimate when the last is ordered, by indexes alone."""
    row = await connection.fetchrow(
        "select clock_timestamp() as at,"
        " (select count(*) from (select from orders where last_error between $1 and $2 and starts_with(last_error, $3)"
        "     limit $4) waiting) as waiting,"
        " (select count(*) from (select from orders where due_at <= now() limit $4) due) as due,"
        " (select count(*) from ca_ledger where kind = 'order' and taken_at > now() - interval '1 hour') as last_hour,"
        " (select count(*) from ca_ledger where kind = 'order' and taken_at > now() - interval '1 day') as last_day",
        *_LAST_ERROR_BOUNDS,
        WAITS_FOR_LIMIT,
        MOST_COUNTED,
    )
    assert row is not None, "a select without a table has one row"
    used = [each.used for each in await ca_ledger.list_usage(connection) if each.limit == "orders_per_account"]
    share = share_of("orders_per_account", limits, "manual")
    seconds = seconds_until_ordered(row["waiting"], used or [0], share)
    return IssuanceProgress(
        waiting=row["waiting"],
        due=row["due"],
        ordered_last_hour=row["last_hour"],
        ordered_last_day=row["last_day"],
        an_hour=math.floor(share / _WINDOW_HOURS) * max(1, len(used)) or 1,
        ends_at=row["at"] + timedelta(seconds=seconds) if row["waiting"] else None,
    )


def seconds_until_ordered(waiting: int, used: list[int], share: int) -> float:
    """Return how long until the last of `waiting` orders has a slot.

    `used` is, for each CA, how many of its `share` of a window are used. Each slot that is used comes free within one
    window.
    """
    free = sum(max(0, share - each) for each in used)
    windows = max(0, waiting - free) / (share * len(used))
    return windows * ca_ledger.ACCOUNT_WINDOW_SECONDS
