"""The clock of this machine, compared with others: tokens, certificates and DNSSEC go wrong when it is.

Evidence is the time by another clock, or the earliest and latest time that it can be: Postgres' clock, the latest
record in the database, the Date of a CA's directory, and the signature of the DNS root, which is renewed twice a day.
"""

from __future__ import annotations

import email.utils
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from api.cli.doctor.asking import ANSWER_SECONDS
from api.cli.doctor.findings import Finding, broken, note, ok
from common.errors import OperatorError

if TYPE_CHECKING:
    import dns.message

    from common.clock import Clock
    from common.db.pool import Database
    from common.host_ports import HostPort
    from common.settings import Settings

_NOTED_SECONDS = 5.0
_BROKEN_SECONDS = 60.0
_ROOT_SIGNATURE_AGE = timedelta(days=2.5)
"""The root is signed twice a day, and resolvers remember it for one more."""
_REMEDY = "set this machine's clock, and keep it set by NTP (`timedatectl set-ntp true`)"


@dataclass(frozen=True, slots=True)
class ClockBounds:
    """By `source`, it is now between `earliest` and `latest`; None: not known."""

    source: str
    earliest: datetime | None
    latest: datetime | None

    def seconds_off(self, now: datetime) -> float:
        """How far a clock that shows `now` is ahead (positive) or behind; 0.0 within the bounds."""
        if self.earliest is not None and now < self.earliest:
            return (now - self.earliest).total_seconds()
        if self.latest is not None and now > self.latest:
            return (now - self.latest).total_seconds()
        return 0.0


def judge_clock(now: datetime, evidence: Iterable[ClockBounds]) -> Finding:
    """Compare the clock with the evidence that is farthest from it."""
    found = list(evidence)
    if not found:
        return note("clock", f"{now:%Y-%m-%d %H:%M} UTC, and there is nothing to compare it with", _REMEDY)
    worst = max(found, key=lambda each: abs(each.seconds_off(now)))
    seconds = worst.seconds_off(now)
    if abs(seconds) < _NOTED_SECONDS:
        return ok("clock", f"agrees with {', '.join(each.source for each in found)}")
    seen = f"{_duration(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} {worst.source}"
    return (broken if abs(seconds) >= _BROKEN_SECONDS else note)("clock", seen, _REMEDY)


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


async def ask_database(database: Database) -> list[ClockBounds]:
    """Return what Postgres' clock shows. Raises: `DatabaseUnavailable`."""
    from common.db import health

    async with database.connection() as connection:
        now = await health.read_clock(connection)
        latest = await health.latest_record_at(connection)
    evidence = [ClockBounds("Postgres", now - timedelta(seconds=2), now + timedelta(seconds=2))]
    if latest is not None:
        evidence.append(ClockBounds("the latest record in the database", latest, None))
    return evidence


async def ask_root(servers: Iterable[HostPort]) -> list[ClockBounds]:
    """Return what the first server shows that answers with a signature of the root zone."""
    import dns.asyncquery
    import dns.exception
    import dns.flags
    import dns.message

    question = dns.message.make_query(".", "SOA", want_dnssec=True, flags=dns.flags.RD | dns.flags.CD)
    for server in servers:
        try:
            answer, _ = await dns.asyncquery.udp_with_fallback(
                question, server.host, timeout=ANSWER_SECONDS, port=server.port
            )
        except (dns.exception.DNSException, OSError, ValueError):
            continue
        if (evidence := read_root_signature(answer)) is not None:
            return [evidence]
    return []


def read_root_signature(answer: dns.message.Message) -> ClockBounds | None:
    """Return the bounds by the signature of the root's SOA record; None where the answer has none."""
    import dns.rdatatype

    for rrset in answer.answer:
        if rrset.rdtype == dns.rdatatype.RRSIG and rrset.covers == dns.rdatatype.SOA:
            inception = datetime.fromtimestamp(rrset[0].inception, UTC)
            expiration = datetime.fromtimestamp(rrset[0].expiration, UTC)
            return ClockBounds("the DNS root's signature", inception, min(expiration, inception + _ROOT_SIGNATURE_AGE))
    return None


def ask_authorities(settings: Settings) -> list[ClockBounds]:
    """Return the Date of each ACME directory that answers. Blocks."""
    from common.trust import authority_trust

    evidence = []
    for url in settings.acme_directory if settings.issuer == "acme" else ():
        try:
            trust = authority_trust(settings)
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS, context=trust) as response:  # noqa: S310 - https only
                date = email.utils.parsedate_to_datetime(response.headers["Date"])
        except (OSError, OperatorError, ValueError, TypeError):
            continue  # the check `authorities` reports that
        evidence.append(ClockBounds(url, date - timedelta(seconds=2), date + timedelta(seconds=2)))
    return evidence


def check_clock(clock: Clock, evidence: Iterable[ClockBounds]) -> Finding:
    """Compare the clock with the evidence as it is now."""
    return judge_clock(clock.now(), evidence)
