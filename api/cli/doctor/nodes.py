"""Checks of what runs: the edge on this machine, and the edges and monitors of the installation by their leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.cli.doctor.asking import get_json
from api.cli.doctor.findings import Finding, broken, note, ok
from common.db.edge_nodes import COPY_REMEDY
from common.installation_problems import find_different_issuers, forget_remedy

if TYPE_CHECKING:
    from common.clock import Clock
    from common.db.edge_nodes import EdgeNode, FailedUpgrade
    from common.db.monitor_nodes import MonitorNode
    from common.db.pool import Database
    from common.settings import Settings

_OLD_REPLICA_SECONDS = 60
_EDGES_WITHIN_SECONDS = 1.0


def check_edge(settings: Settings) -> list[Finding]:
    """Check the edge on this machine, if one runs."""
    return judge_edge(settings, get_json(settings.edge_admin, "/readyz"))


def judge_edge(settings: Settings, readiness: dict[str, Any] | None) -> list[Finding]:
    """`readiness`: the answer of its ``/readyz``, whatever the status."""
    if readiness is None:
        remedy = "start `frontage edge` if this machine is to have one"
        return [note("edge", f"none answers on {settings.edge_admin}", remedy)]
    findings = [_judge_replica(settings, readiness.get("replica") or {})]
    certificates = readiness.get("certificates") or {}
    if unusable := certificates.get("unusable"):
        seen = f"{unusable} certificates that clients ask for cannot be used, such as that of {certificates['example']}"
        findings.append(broken("edge", seen, "its log has the reasons"))
    if failed := readiness.get("failed_upgrade"):
        seen = f"the upgrade at {failed.get('at')} failed, and the old version serves on ({failed.get('reason')})"
        findings.append(broken("edge", seen, "put that right, and upgrade again"))
    return findings


def _judge_replica(settings: Settings, replica: dict[str, Any]) -> Finding:
    if reason := replica.get("reason"):
        seen, _, remedy = str(reason).partition(": ")
        return broken("edge", seen, remedy)
    age = replica.get("age_seconds")
    if replica.get("held_copy"):
        accept = f"curl -X POST http://{settings.edge_admin}/replica/accept"
        seen = "the database has lost many routes, the edge still serves them"
        return broken("edge", seen, f"restore it, or agree with `{accept}`")
    if age is None or age > _OLD_REPLICA_SECONDS:
        known = "of unknown age" if age is None else f"{age:.0f} seconds old"
        return broken("edge", f"its copy is {known}", "see whether it reaches the database")
    return ok("edge", f"serves from a copy that was current {age:.1f} seconds ago")


async def check_nodes(database: Database, clock: Clock) -> list[Finding]:
    """Check the edges and monitors by their leases. Raises: `DatabaseUnavailable`."""
    from common.db import edge_nodes, health, monitor_nodes
    from common.liveness import await_edges

    async with database.connection() as connection:
        edges = await edge_nodes.list_nodes(connection)
        monitors = await monitor_nodes.list_nodes(connection)
        is_used = await health.has_domains(connection)
    reach = await await_edges(database, clock, within_seconds=_EDGES_WITHIN_SECONDS)
    return [*judge_edges(edges, reach.behind, is_used=is_used), *judge_monitors(monitors, is_used=is_used)]


def judge_edges(edges: Sequence[tuple[EdgeNode, bool]], behind: Iterable[EdgeNode], *, is_used: bool) -> list[Finding]:
    """`edges` with whether each one's lease lasts; `is_used`: there are domains to serve."""
    alive = [edge for edge, is_alive in edges if is_alive]
    gone = [edge for edge, is_alive in edges if not is_alive]
    findings = [_judge_behind(edge) for edge in behind]
    findings += [_judge_upgrade(edge, failed) for edge in alive if (failed := edge.description.failed_upgrade)]
    findings += [
        broken("edges", f"{_named(edge.node_id, edge.host)} and {shared[:8]} have one node id", COPY_REMEDY)
        for edge in alive
        if (shared := edge.shares_id_of)
    ]
    findings += [
        note(
            "edges",
            f"{_named(edge.node_id, edge.host)} left without ending its lease at {_time(edge.lease_until)}",
            f"see its log, or {forget_remedy(edge)}",
        )
        for edge in gone
    ]
    if not alive:
        return [*findings, _none("edges", "edge", is_used=is_used)]
    return findings or [ok("edges", f"{len(alive)}, all with every change applied")]


def _judge_behind(edge: EdgeNode) -> Finding:
    seen, _, remedy = (edge.condition.reason or "has not applied the latest changes").partition(": ")
    remedy = remedy or "see its log, and whether it reaches the database"
    return broken("edges", f"{_named(edge.node_id, edge.host)}: {seen}", remedy)


def _judge_upgrade(edge: EdgeNode, failed: FailedUpgrade) -> Finding:
    where = _named(edge.node_id, edge.host)
    seen = f"{where}: its upgrade at {_time(failed.at)} failed, and the version before serves on ({failed.reason})"
    return broken("edges", seen, "put that right there, and upgrade again")


def judge_monitors(monitors: Sequence[MonitorNode], *, is_used: bool) -> list[Finding]:
    """Judge the monitors by their leases."""
    alive = [monitor for monitor in monitors if monitor.is_alive]
    if not alive:
        last = max((monitor.lease_until for monitor in monitors), default=None)
        return [_none("monitors", "monitor", is_used=is_used or last is not None, last=last)]
    findings = [
        broken(
            "monitors",
            f"{_named(each.node_id, each.host)} has stopped work: {', '.join(each.stopped)}",
            "see its log for the reason",
        )
        for each in alive
        if each.stopped
    ]
    if (problem := find_different_issuers(alive)) is not None:
        findings.append(broken("monitors", problem.seen, problem.remedy))
    return findings or [ok("monitors", f"{len(alive)}, all work runs")]


def _none(subject: str, role: str, *, is_used: bool, last: datetime | None = None) -> Finding:
    seen = f"no {role} is running" + (f", the last one until {_time(last)}" if last is not None else "")
    return (broken if is_used else note)(subject, seen, f"start `frontage {role}`")


def _named(node_id: str, host: str) -> str:
    return f"{node_id[:8]} on {host}" if host else node_id[:8]


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
