"""`frontage status`: what runs, what is due, and what needs a hand, as the dashboard shows it to operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from api.cli.printing import AsJson, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from api.cli.services import CommandServices
    from common.db.monitor_nodes import MonitorNode
    from common.db.status import Edge, InstallationStatus
    from common.settings import Settings

_ASKED_WITHIN = timedelta(seconds=5)
"""Reading the state takes no longer."""


def status(as_json: AsJson = False) -> None:
    """Print what runs, what is due, and what needs a hand."""
    from api.answers.installation import operations
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> tuple[Settings, InstallationStatus, list[str]]:
        found = await services.installation.read()
        return services.settings, found, services.installation.problems(found)

    settings, found, of_installation = run_with_services(work)
    own = _examine_machine(settings, found.at)
    problems = [*of_installation, *own.problems]
    notices = [*found.notices, *own.notices]
    if as_json:
        print_json(operations(found, problems, notices))
        return
    from rich.console import Console

    _print(Console(soft_wrap=True, highlight=False), found, problems, notices)


@dataclass(frozen=True, slots=True)
class _Machine:
    problems: list[str]
    notices: list[str]


def _examine_machine(settings: Settings, at: datetime) -> _Machine:
    """Return what `frontage doctor` finds of the disk and the clock of this machine. `at`: Postgres' time."""
    from api.cli.doctor.clock import ClockBounds, check_clock
    from api.cli.doctor.findings import FindingState
    from api.cli.doctor.machine import check_disk
    from common.clock import SystemClock

    evidence = ClockBounds("Postgres", at - _ASKED_WITHIN, at + _ASKED_WITHIN)
    findings = [check_disk(settings.state_dir, "disk"), check_clock(SystemClock(), [evidence])]
    shown = {
        state: [f"This machine: {each.subject}: {each.text}." for each in findings if each.state is state]
        for state in FindingState
    }
    return _Machine(shown[FindingState.BROKEN], shown[FindingState.NOTE])


def _described(edge: Edge) -> str:
    described = edge.node.description
    parts = [f"Frontage {described.software_version or 'of an unknown version'}"]
    if described.held_copy_at is not None:
        parts.append(f"holds a copy since {described.held_copy_at:%Y-%m-%d %H:%M} UTC")
    if described.failed_upgrade is not None:
        parts.append(f"upgrade failed at {described.failed_upgrade.at:%Y-%m-%d %H:%M} UTC")
    if edge.is_alive and edge.node.unusable.count:
        parts.append(f"{edge.node.unusable.count:,} certificates unusable")
    if edge.is_alive and edge.node.traffic is not None:
        parts.append(f"{edge.node.traffic.requests:,} requests in the last minute, {edge.node.traffic.failed:,} failed")
    return ", ".join(parts)


def _state(monitor: MonitorNode) -> str:
    if not monitor.is_alive:
        return "ended"
    return f"stopped: {', '.join(monitor.stopped)}" if monitor.stopped else "running"


def _print(console: Console, found: InstallationStatus, problems: Sequence[str], notices: Sequence[str]) -> None:
    for words in problems:
        console.print(f"✗ {words}", style="red", markup=False)
    if not problems:
        console.print("✓ all is well", style="green", markup=False)
    for words in notices:
        console.print(f"! {words}", style="yellow", markup=False)
    sections = {
        "edges": [
            f"{each.node.label}  {each.node.host}  {each.node.condition.state if each.is_alive else 'ended'}"
            f"  version {each.node.version}, {each.behind} behind  {_described(each)}"
            for each in found.edges
        ],
        "monitors": [
            f"{each.node_id[:8]}  {each.host}  {_state(each)}  {each.issuer}"
            f"  Frontage {each.software_version or 'of an unknown version'}"
            for each in found.monitors
        ],
        "due now": [
            f"{each.name}  {each.count}" + (f"  oldest {each.oldest_seconds:.1f} s" if each.oldest_seconds else "")
            for each in found.queues
        ],
        "certificates by days left": [f"{each.label}  {each.count}" for each in found.certificates if each.count],
        "limits of the CA": [
            f"{each.issuer}  {each.limit.replace('_', ' ')}  {each.subject}  {each.used} of {each.most}"
            for each in found.ledger
        ],
        "orders that fail or wait": [f"{each.count}  {each.reason}  ({each.example})" for each in found.failing_orders],
    }
    for title, lines in sections.items():
        console.print(f"\n{title}", style="bold", markup=False)
        for line in lines or ["none"]:
            console.print(f"  {line}", markup=False)
