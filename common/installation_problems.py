"""What needs an operator's hand, decided from the state of the installation.

`frontage status`, the operators' page and `frontage doctor` show these problems, and the alerts of
`api.cli.metrics.alerts` fire at the same bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from common.db.edge_nodes import COPY_REMEDY, EdgeNode
from common.db.monitor_nodes import MonitorNode
from common.db.status import UNRENEWED_DAYS, InstallationStatus

OVERDUE_SECONDS: Final = 300
"""Work that has been due for longer is overdue."""
USED_RATIO: Final = 0.9
"""A limit of a CA is nearly used up above this part of it."""
MOST_FAILING_ORDERS: Final = 10
"""More orders that fail for one reason are no affair of single domains."""
MOST_FAILING_ENDPOINTS: Final = 5
UNREVOKED_SECONDS: Final = 600
"""A certificate is replaced and revoked within minutes, unless something is in the way."""

NODES: Final = ("edges", "monitors")

_AFTER_AN_OUTAGE: Final = "after an outage of the database it reports again within seconds, otherwise start one"


@dataclass(frozen=True, slots=True)
class InstallationProblem:
    """Something that an operator should put right.

    `seen` and `remedy` are the parts of a sentence; `is_critical` as the severity of an alert.
    """

    subject: str
    seen: str
    remedy: str
    is_critical: bool = False

    @property
    def text(self) -> str:
        """The problem and its remedy as a sentence."""
        return f"{self.seen}: {self.remedy}."


def find_problems(status: InstallationStatus) -> list[InstallationProblem]:
    """Find everything in the installation that needs an operator."""
    return [
        *_edge_problems(status),
        *_monitor_problems(status),
        *_certificate_problems(status),
        *_revocation_problems(status),
        *_order_problems(status),
        *_overdue_work(status),
        *_dns_check_problems(status),
    ]


def list_problems(status: InstallationStatus) -> list[str]:
    """Return the problems of the installation as sentences for an operator."""
    return [problem.text for problem in find_problems(status)]


def _edge_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    alive = [edge for edge in status.edges if edge.is_alive]
    if not status.edges:
        yield InstallationProblem(
            "edges", "No edge runs, so no domain is served", "start `frontage edge`", is_critical=True
        )
    elif not alive:
        remedy = f"one that runs serves from its copy and takes no change; {_AFTER_AN_OUTAGE}"
        yield InstallationProblem("edges", "No edge holds a lease", remedy, is_critical=True)
    for old in status.old_certificates:
        others = f", and {old.count - 1} others at least" if old.count > 1 else ""
        seen = (
            f"Edge {old.edge.label} on {old.edge.host or 'an unknown host'} serves an old certificate of {old.example}"
        )
        remedy = "see its log and its machine; take it out of the DNS or the load balancer until it follows again"
        yield InstallationProblem("edges", f"{seen}{others}", remedy, is_critical=True)
    for edge in status.edges:
        where = f"{edge.node.label} on {edge.node.host or 'an unknown host'}"
        condition, failed = edge.node.condition, edge.node.description.failed_upgrade
        if not edge.is_alive:
            seen = f"Edge {where} has not renewed its lease, which ended at {_format_time(edge.node.lease_until)}"
            remedy = f"it may serve an old copy; see its machine and its log, or {forget_remedy(edge.node)}"
            yield InstallationProblem("edges", seen, remedy)
        elif condition.state != "serving":
            reason = condition.reason or "no reason given"
            yield InstallationProblem("edges", f"Edge {where} is {condition.state}", reason, is_critical=True)
        if edge.is_alive and edge.node.shares_id_of is not None:
            seen = f"Edge {where} and edge {edge.node.shares_id_of[:8]} have one node id, as after a copy of a machine"
            yield InstallationProblem("edges", seen, COPY_REMEDY)
        unusable = edge.node.unusable
        if edge.is_alive and condition.state != "unusable" and unusable.count:
            some = f"{unusable.count} certificates" if unusable.count > 1 else "a certificate"
            seen = f"Edge {where} cannot use {some} that clients ask for, such as that of {unusable.example}"
            yield InstallationProblem("edges", seen, "its log has the reasons")
        if edge.is_alive and failed is not None:
            at = f"{failed.at:%Y-%m-%d %H:%M} UTC"
            reason = _without_full_stop(failed.reason)
            seen = f"Upgrade of edge {where} failed at {at}, and the version before serves on ({reason})"
            yield InstallationProblem("edges", seen, "put that right there, and upgrade again")


def forget_remedy(edge: EdgeNode) -> str:
    """Return the advice for an edge that will not come back: the command that removes it."""
    return f"`frontage edge forget {edge.label}` if it was removed"


def _monitor_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    alive = [monitor for monitor in status.monitors if monitor.is_alive]
    undone = "no certificate is issued, no record is checked, no webhook is sent"
    if not status.monitors:
        seen = f"No monitor runs, so {undone}"
        yield InstallationProblem("monitors", seen, "start `frontage monitor`", is_critical=True)
    elif not alive:
        last = max(status.monitors, key=lambda each: each.lease_until)
        seen = f"No monitor holds a lease, and the last one, on {last.host}, ended at {_format_time(last.lease_until)}"
        yield InstallationProblem("monitors", seen, f"{undone}; {_AFTER_AN_OUTAGE}", is_critical=True)
    for monitor in alive:
        if monitor.stopped:
            seen = f"Monitor on {monitor.host} has stopped work ({', '.join(monitor.stopped)}), and tries it again"
            yield InstallationProblem("monitors", seen, "see its log for the reason", is_critical=True)
    if (problem := find_different_issuers(alive)) is not None:
        yield problem


def _without_full_stop(reason: str) -> str:
    """Remove the full stop, so that the reason can stand within a sentence."""
    return reason.removesuffix(".")


def _format_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def find_different_issuers(alive: Sequence[MonitorNode]) -> InstallationProblem | None:
    """Report monitors that use different authorities.

    Domains would get certificates of one or the other by chance.
    """
    hosts: dict[str, set[str]] = {}
    for monitor in alive:
        hosts.setdefault(monitor.issuer, set()).add(monitor.host)
    if len(hosts) < 2:
        return None
    named = "; ".join(f"{_shorten_issuer(issuer)} on {', '.join(sorted(on))}" for issuer, on in sorted(hosts.items()))
    if all(issuer.startswith("internal ") for issuer in hosts):
        seen = f"Monitors use {len(hosts)} internal CAs, of which clients may trust only one ({named})"
        remedy = "restart the monitors: each then takes the one that is kept in Postgres"
    else:
        seen = f"Monitors use different authorities ({named})"
        remedy = "give every monitor the same FRONTAGE_ISSUER and FRONTAGE_ACME_DIRECTORY"
    return InstallationProblem("monitors", seen, remedy, is_critical=True)


def _shorten_issuer(issuer: str) -> str:
    kind, _, rest = issuer.partition(" ")
    return f"internal {rest[:8]}" if kind == "internal" else issuer


def _certificate_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    span = next(span for span in status.certificates if span.from_days is None)
    if expired := span.count:
        seen = (
            f"{expired} certificates in service have expired" if expired > 1 else "A certificate in service has expired"
        )
        yield InstallationProblem("certificates", seen, _last_error(span.example, expired), is_critical=True)
    within = {each.within_days: each for each in status.unrenewed}
    if unrenewed := within[UNRENEWED_DAYS].count - within[0].count:
        which = f"{unrenewed} certificates end" if unrenewed > 1 else "A certificate ends"
        seen = f"{which} within {UNRENEWED_DAYS} days without a renewal"
        remedy = _last_error(within[UNRENEWED_DAYS].example, unrenewed)
        yield InstallationProblem("certificates", seen, remedy, is_critical=True)


def _revocation_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    waiting = status.revocations
    if waiting.oldest_seconds > UNREVOKED_SECONDS:
        which = f"{waiting.count:,} certificates wait" if waiting.count > 1 else "A certificate waits"
        seen = f"{which} to be revoked, that of {waiting.domain} for {waiting.oldest_seconds / 60:,.0f} minutes"
        remedy = (
            f"`frontage certificate show {waiting.domain}` has the reason and the state of its replacement;"
            f" `frontage certificate revoke {waiting.domain} --at-once` does not wait for that"
        )
        yield InstallationProblem("certificates", seen, remedy, is_critical=True)


def _last_error(example: str | None, count: int) -> str:
    which = " of one of them" if count > 1 else ""
    return f"`frontage certificate show {example or 'DOMAIN'}` has the last error{which}"


def _order_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    for failing in status.failing_orders:
        if failing.count > MOST_FAILING_ORDERS:
            seen = f"{failing.count} certificate orders fail for one reason ({_without_full_stop(failing.reason)})"
            remedy = f"`frontage certificate show {failing.example}` prints the state of one of them"
            yield InstallationProblem("certificate orders", seen, remedy)
    for used in status.ledger:
        if used.used > USED_RATIO * used.most:
            about = f" for {used.subject}" if used.subject else ""
            seen = f"{used.used} of {used.most} {used.limit.replace('_', ' ')} at {used.issuer}{about} are used"
            yield InstallationProblem(
                "limits of the CA", seen, "`frontage certificate limits` prints when there is room again"
            )


def _overdue_work(status: InstallationStatus) -> Iterator[InstallationProblem]:
    for queue in status.queues:
        if queue.oldest_seconds is not None and queue.oldest_seconds > OVERDUE_SECONDS:
            seen = f"Overdue {queue.name}: {queue.count:,}, the first for {queue.oldest_seconds / 60:,.0f} minutes"
            yield InstallationProblem("work", seen, "start more monitors, or see their logs")
    if status.endpoints_failing > MOST_FAILING_ENDPOINTS:
        seen = f"{status.endpoints_failing} webhook endpoints do not take deliveries"
        yield InstallationProblem("webhooks", seen, "see whether monitors reach the internet")


def _dns_check_problems(status: InstallationStatus) -> Iterator[InstallationProblem]:
    if not status.checks.is_healthy and any(monitor.is_alive for monitor in status.monitors):
        yield InstallationProblem("DNS checks", "DNS checks are not well", status.checks.reason or "no reason given")
    if status.alarms_held:
        seen = f"Alarms of {status.alarms_held} domains are held"
        yield InstallationProblem("alarms", seen, "`frontage alarms release` sends them")
