"""Bounds of the API and the dashboard that no setting changes: how much one call does, how often pages are rendered.

`build_app` is given them and hands them on; rates of requests are those of `api.rate_limits`.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.db.connect_flow_list import SCANNED
from common.db.domain_list_query import SEARCH_LIMITS, SearchLimits
from common.db.preparations import MOST_WAITING
from common.enrolment.origins import LONGEST_SECONDS


@dataclass(frozen=True, slots=True)
class LiveIntervals:
    """How often the parts of the dashboard's pages are rendered anew, in seconds."""

    overview: float = 10.0
    totals: float = 5.0  # of one application
    application_checks: float = 15.0
    domain_list: float = 5.0
    domain_search: float = 15.0  # it reads more than a part of the list
    certificate: float = 1.0
    diagnosis: float = 15.0
    activity: float = 5.0
    monitored: float = 5.0
    prepared: float = 1.0
    deliveries: float = 5.0
    delivery: float = 1.0
    rights: float = 15.0  # of the stream's user
    database_away: float = 5.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a process.

    `most_replayed`: deliveries that one call sends again, in one statement, which holds their rows. `most_prepared`:
    preparations of an application that wait. `flows_scanned`: flows that one part of their list looks through.
    `origin_seconds`: how long an origin is waited for before its domain is enrolled.
    """

    most_replayed: int = 1000
    most_prepared: int = MOST_WAITING
    flows_scanned: int = SCANNED
    origin_seconds: float = LONGEST_SECONDS
    search: SearchLimits = SEARCH_LIMITS
    live: LiveIntervals = LiveIntervals()


BOUNDS = Bounds()
