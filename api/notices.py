"""Notices: what stands beside the message of an accepted change that visitors will not meet as it was meant.

The change is durable all the same. A notice names what keeps it from visitors, for programs (`code`) and for the reader
(`hint`). An answer has one `code`, that of its first notice, and one `hint`, which names all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from common.db.edge_nodes import EdgeNode, UnreachedOrigin
from common.liveness import Reach
from common.origin_faults import WORDS, OriginFault


class Notice(NamedTuple):
    """A reason why visitors do not see a change yet: for programs, and in sentences."""

    code: str
    hint: str


NO_MONITOR = Notice(
    "no_monitor",
    "No certificate is issued now: no running monitor issues any. The operator has to start `frontage monitor`, or to"
    " mend the running one: `frontage doctor` shows which.",
)
NO_EDGE = Notice(
    "no_edge",
    "New changes are not served now: no edge reports to the database. The operator has to start `frontage edge`; just"
    " after an outage of the database, edges report again within seconds.",
)
EDGES_UNKNOWN = Notice("edges_unknown", "Whether the edges serve the change could not be asked.")

_TROUBLE = {
    "held": "holds back many removals until the operator accepts them",
    "stuck": "cannot write its copy of the routes",
    "unusable": "cannot open certificates with its master key",
}
"""Of an edge, by its state, without what only the operator may see (`EdgeNode.condition.reason`)."""


def describe_outage(fault: OriginFault) -> str:
    """Return what edges met at an origin, as the end of a sentence about them."""
    return WORDS[fault].edge


def of_edges(reach: Reach) -> list[Notice]:
    """At most one."""
    if not reach.alive:
        return [NO_EDGE]
    if not reach.behind:
        return []
    edges = "; ".join(map(describe_edge, reach.behind))
    words = f"{len(reach.behind)} of {reach.alive} edges do not serve the change yet: {edges}."
    return [Notice("edges_behind", words)]


def describe_edge(edge: EdgeNode) -> str:
    """Describe why an edge does not serve a change."""
    return f"{edge.label} {_TROUBLE.get(edge.condition.state, 'has not applied it')}"


def describe_lapsed(edge: EdgeNode) -> str:
    """Describe since when an edge does not report."""
    at = f"{edge.lease_until:%Y-%m-%d %H:%M} UTC"
    return f"{edge.label} has not reported since {at}, and may serve what it knew then"


def describe_unreached(unreached: UnreachedOrigin) -> str:
    """Describe what an edge met at an origin."""
    return f"{unreached.edge.label} {WORDS[unreached.fault].edge}"


def combined(notices: Iterable[Notice]) -> Notice | None:
    """Return the notice that stands beside a message: the first one's code and all hints; None where there is none."""
    noted = list(notices)
    return Notice(noted[0].code, " ".join(notice.hint for notice in noted)) if noted else None
