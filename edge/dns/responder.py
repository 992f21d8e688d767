"""The responder: from a message to its response, with limits and counts.

A client, an IPv4 address or an IPv6 /64, has `PER_SECOND` questions, and `BURST` at once. Beyond that UDP is not
answered, but for every second question, which gets a response no longer than itself that leads to TCP: so a resolver
whose address another party forges still gets its answers, and the forger gains nothing. Over TCP the connection is
closed.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from common.metrics import Family, Samples
from common.token_buckets import TokenBuckets
from edge.dns.messages import (
    MOST_UDP_BYTES,
    NOERROR,
    NXDOMAIN,
    REFUSED,
    SERVFAIL,
    Malformed,
    Unanswerable,
    read_question,
    write_response,
    write_truncated,
)
from edge.dns.zone import Zone

PER_SECOND: Final = 100.0
BURST: Final = 1000.0
MOST_TCP_BYTES: Final = 65_535
_MOST_CLIENTS: Final = 10_000
_OUTCOMES: Final = {NOERROR: "answered", NXDOMAIN: "absent", REFUSED: "refused", SERVFAIL: "failed"}


class DnsCounters:
    """What was asked, by outcome; it outlives the responders of one process."""

    def __init__(self) -> None:
        self._questions: Counter[str] = Counter()

    def count(self, outcome: str) -> None:
        """Count a question."""
        self._questions[outcome] += 1

    def families(self) -> list[Family]:
        """Return the metrics."""
        samples: Samples = {(outcome,): [float(count)] for outcome, count in self._questions.items()}
        return [
            Family("frontage_edge_dns_questions", "Messages at EDGE_DNS.", "counter", ("outcome",), samples=samples)
        ]


class Responder:
    """Answers messages for one zone. One for each time that the zone is served."""

    def __init__(self, zone: Zone, counters: DnsCounters, *, per_second: float = PER_SECOND) -> None:
        self._zone = zone
        self._counters = counters
        self._buckets = TokenBuckets(per_second, BURST, most=_MOST_CLIENTS)
        self._is_next_answered = False

    def respond(self, message: bytes, client: str, now: float, *, over_tcp: bool = False) -> bytes | None:
        """Return the response, None where there is none. `client` is a key of limits, `now` monotonic seconds."""
        is_over_limit = self._buckets.take(client, now) > 0
        if is_over_limit:
            self._is_next_answered = not self._is_next_answered
            if over_tcp or not self._is_next_answered:
                return self._counted(None, "limited")
        try:
            question = read_question(message)
        except Unanswerable:
            return self._counted(None, "ignored")
        except Malformed as error:
            return self._counted(error.response, error.outcome)
        if is_over_limit:
            return self._counted(write_truncated(question), "limited")
        answer = self._zone.answer(question)
        response = write_response(question, answer, most_bytes=MOST_TCP_BYTES if over_tcp else MOST_UDP_BYTES)
        return self._counted(response, _OUTCOMES.get(answer.code, "malformed"))

    def _counted(self, response: bytes | None, outcome: str) -> bytes | None:
        self._counters.count(outcome)
        return response
