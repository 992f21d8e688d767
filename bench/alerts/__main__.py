"""The command line: provokes the causes one after another and prints what fired."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.table import Table

import bench.alerts
from api.cli.metrics.alerts import ALERTS, in_yaml, rules
from bench import output
from bench.alerts.causes import Cause, list_causes
from bench.alerts.prometheus import Prometheus, is_installed, running_prometheus
from bench.alerts.stage import AlertStage, prepare
from bench.certificate_world import CertificateWorld, certificate_world
from bench.lab.sink import WebhookSink
from common.errors import FrontageError, OperatorError
from common.processes import loop_factory

_BOUND_SECONDS = 150.0
_POLL_SECONDS = 0.2
_CHECK_INTERVAL_SECONDS = "10"


@dataclass(slots=True)
class AlertTimes:
    """Seconds from the cause's beginning until each alert fired, and from its end until each cleared."""

    cause: str
    fired: dict[str, float] = field(default_factory=dict)
    cleared: dict[str, float] = field(default_factory=dict)
    unexpected: set[str] = field(default_factory=set)
    missing: str = ""


def main() -> None:
    """Provoke the causes and print which alerts fired and cleared; exit with 1 if one did not."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.alerts",
        description=bench.alerts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="alerts whose name contains this")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    causes = [cause for cause in list_causes() if any(arguments.only in alert for alert in cause.alerts)]
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            outcomes = runner.run(_provoke_all(console, causes))
    except FrontageError as error:
        sys.exit(f"bench.alerts: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(causes, outcomes))
    unprovoked = sorted({alert.name for alert in ALERTS} - {name for each in outcomes for name in each.fired})
    console.print(f"not fired: {', '.join(unprovoked) or 'none'}")
    written = [{**asdict(each), "unexpected": sorted(each.unexpected)} for each in outcomes]
    console.print(f"written to {output.write('alerts', {'outcomes': written})}")
    is_complete = all(
        cause.missing or set(each.cleared) == cause.alerts for cause, each in zip(causes, outcomes, strict=True)
    )
    sys.exit(0 if is_complete else 1)


async def _provoke_all(console: Console, causes: Sequence[Cause]) -> list[AlertTimes]:
    """Provoke each cause in turn and return its times.

    Raises: `OperatorError`.
    """
    if not is_installed():
        raise OperatorError("Prometheus is missing: apt-get install prometheus")
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-alerts-", ignore_cleanup_errors=True))
        )
        os.chmod(directory, 0o755)  # Postgres is another user when we are root
        world = await stack.enter_async_context(
            certificate_world(
                directory,
                monitors=1,
                CHECK_INTERVAL_SECONDS=_CHECK_INTERVAL_SECONDS,
                EDGE_HTTPS_REDIRECT="false",
            )
        )
        sink = await stack.enter_async_context(WebhookSink.serve())
        session = await stack.enter_async_context(aiohttp.ClientSession(world.api.settings.base_url))
        stage = await prepare(world, sink, session)
        targets = _targets(world)
        prometheus = await stack.enter_async_context(
            running_prometheus(directory, in_yaml(rules(f"{world.api.settings.base_url}/docs")), targets)
        )
        await prometheus.until_scraped(len(targets))
        outcomes = []
        for cause in causes:
            console.print(f"{time.strftime('%H:%M:%S')} {cause.words}")
            outcomes.append(await _provoke(cause, stage, prometheus))
            console.print(f"         fired {outcomes[-1].fired}, cleared {outcomes[-1].cleared}", highlight=False)
        return outcomes


def _targets(world: CertificateWorld) -> list[str]:
    """Return the admin addresses that Prometheus scrapes, as host:port."""
    edges = [edge.settings.edge_admin for edge in world.edges]
    monitors = [monitor.settings.monitor_admin for monitor in world.monitors]
    return [str(each) for each in (*edges, *monitors, world.api.settings.api_admin)]


async def _provoke(cause: Cause, stage: AlertStage, prometheus: Prometheus) -> AlertTimes:
    """Provoke one cause, and time its alerts until they have fired and cleared."""
    outcome = AlertTimes(cause.words, missing=cause.missing)
    if cause.missing:
        return outcome
    await _watch(prometheus, lambda firing: not firing)  # what the cause before has left
    begun_at = time.monotonic()

    def note_fired(firing: set[str]) -> bool:
        for name in firing & cause.alerts:
            outcome.fired.setdefault(name, round(time.monotonic() - begun_at, 1))
        outcome.unexpected |= firing - cause.alerts
        return set(outcome.fired) == cause.alerts

    async with cause.happening(stage):
        await _watch(prometheus, note_fired)
    mended_at = time.monotonic()

    def note_cleared(firing: set[str]) -> bool:
        for name in set(outcome.fired) - firing:
            outcome.cleared.setdefault(name, round(time.monotonic() - mended_at, 1))
        return set(outcome.cleared) == set(outcome.fired)

    await _watch(prometheus, note_cleared)
    return outcome


async def _watch(prometheus: Prometheus, is_over: Callable[[set[str]], bool]) -> None:
    """Poll the firing alerts until `is_over` holds for them, or `_BOUND_SECONDS` have passed."""
    deadline = time.monotonic() + _BOUND_SECONDS
    while not is_over(await prometheus.firing()) and time.monotonic() < deadline:  # noqa: ASYNC110 - asked over HTTP
        await asyncio.sleep(_POLL_SECONDS)


def _table(causes: Sequence[Cause], outcomes: Sequence[AlertTimes]) -> Table:
    table = Table("alert", "cause", "fired after", "cleared after", title="Alerts, waits and windows cut to seconds")
    for cause, outcome in zip(causes, outcomes, strict=True):
        for name in sorted(cause.alerts):
            fired, cleared = outcome.fired.get(name), outcome.cleared.get(name)
            table.add_row(
                name,
                cause.words,
                outcome.missing or ("not fired" if fired is None else f"{fired:.1f} s"),
                "" if fired is None else "not cleared" if cleared is None else f"{cleared:.1f} s",
            )
    return table


if __name__ == "__main__":
    main()
