"""Judges a history, and what Postgres and the edges hold in the end. It shares no code with what it judges.

A domain has one writer, so its writes are in order. What a request saw is explained by a write that was not refused and
had begun before the request ended. That answer is stale by the time since the first later write had been answered with
success. A write of which an attempt got no answer may also take effect a while after it: the attempt may have been
under way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from bench.cluster.history import History, Operation

_BEFORE = Operation("nobody", "write", "", None, 0.0, outcome="ok")
"""What is so before the first write: the domain is not enrolled."""
LATE_SECONDS = 40.0
"""How long an unanswered attempt may still take effect: longer than the API and the balancer wait for anything."""
READINESS_SECONDS = 2.0
"""Within which an edge that is too old must have said so."""


@dataclass(slots=True)
class Verdict:
    """What was found. `wrong`: how often, by question; `details`: each in words, with its timeline."""

    wrong: dict[str, int] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    def ask(self, question: str) -> None:
        """Count a question, which may have no wrong answer."""
        self.wrong.setdefault(question, 0)

    def add(self, question: str, words: str, timeline: Iterable[str] = ()) -> None:
        """Add a wrong answer."""
        self.wrong[question] = self.wrong.get(question, 0) + 1
        if self.wrong[question] <= 5:
            self.details.append("\n    ".join([f"{question}: {words}", *timeline]))

    @property
    def is_right(self) -> bool:
        """Whether nothing was wrong."""
        return not any(self.wrong.values())


@dataclass(frozen=True, slots=True)
class Explanation:
    """The write that explains an answer best, and the seconds by which the answer was stale then."""

    write: Operation
    stale_seconds: float
    superseded_by: Operation | None


def explain(writes: list[Operation], value: str | None, began: float, ended: float) -> Explanation | None:
    """Return what explains that a request saw `value`, or None. `writes`: of the domain, in order."""
    found: Explanation | None = None
    for number, write in enumerate(writes := [_BEFORE, *writes]):
        if write.value != value or write.outcome == "refused" or write.began > ended:
            continue
        late_until = write.unanswered_at + LATE_SECONDS if write.unanswered_at is not None else 0.0
        later = next((each for each in writes[number + 1 :] if each.outcome == "ok" and each.ended < began), None)
        stale = max(0.0, began - max(later.ended, late_until)) if later else 0.0
        if found is None or stale < found.stale_seconds:
            found = Explanation(write, stale, later)
    return found


def judge_reads(history: History, verdict: Verdict, *, is_lossless: bool) -> None:
    """Judge what partners read at the API: the last write, and none that was answered with success before is lost."""
    verdict.ask("lost writes")
    verdict.ask("impossible reads")
    lost: list[tuple[Operation, Operation]] = []
    writes = _by_domain(history.of("write"))
    for read in history.of("read"):
        if read.outcome != "ok":
            continue
        found = explain(writes.get(read.domain, []), read.value, read.began, read.ended)
        if found is None:
            verdict.add("impossible reads", f"{read}", history.around(read.began, read.domain))
        elif found.stale_seconds > 0:
            assert found.superseded_by is not None
            lost.append((found.superseded_by, read))
    for write, read in lost:
        if is_lossless or not _is_of_a_lost_tail(history, write, read):
            verdict.add("lost writes", f"{write}\n    was lost at {read}", history.around(write.ended, write.domain))
    verdict.figures["writes lost with a tail"] = "0" if is_lossless else f"{len({id(write) for write, _ in lost})}"


def _is_of_a_lost_tail(history: History, write: Operation, read: Operation) -> bool:
    """Return whether a failover explains that the read, or a visit, does not show the write.

    It does if nothing was kept that began after the lost write's answer and was answered before the failover began.
    """
    for fault in history.faults:
        is_between = fault.lost_from <= write.ended <= fault.ended
        if not fault.takes_primary or not is_between or read.ended < fault.began:
            continue
        kept = [
            seen
            for seen in history.of("read")
            if seen.outcome == "ok" and seen.began > fault.ended and seen.domain != write.domain
            if seen.value is not None  # which is so after a removal and before an enrolment
            for other in history.of("write", seen.domain)
            if other.value == seen.value
            and other.outcome == "ok"
            and write.ended < other.began
            and other.ended < fault.began
        ]
        if not kept:
            return True
    return False


def judge_visits(
    history: History, verdict: Verdict, steady: Iterable[str], *, max_age_seconds: float, is_lossless: bool = True
) -> None:
    """Judge what visitors saw: a route that was current, or an edge that admits that its copy is old.

    A route is current, too, where the write after it is of a tail that asynchronous replication lost.
    """
    for question in ("impossible visits", "stale answers", "failed requests"):
        verdict.ask(question)
    writes, lasting = _by_domain(history.of("write")), frozenset(steady)
    readiness = _by_actor(history.of("ready"))
    oldest, served, in_flight = 0.0, 0, 0
    for visit in history.of("visit"):
        known = writes.get(visit.domain, [])
        if visit.outcome != "ok":
            if visit.domain in lasting and visit.began > known[0].ended:
                if _is_hit(history, visit):
                    in_flight += 1
                else:
                    verdict.add("failed requests", f"{visit}", history.around(visit.began, visit.domain))
            continue
        served += 1
        found = explain(known, visit.value, visit.began, visit.ended)
        if found is None:
            verdict.add("impossible visits", f"{visit}", history.around(visit.began, visit.domain))
            continue
        later = found.superseded_by
        if later is not None and not is_lossless and _is_of_a_lost_tail(history, later, visit):
            continue
        oldest = max(oldest, found.stale_seconds)
        if found.stale_seconds > max_age_seconds + READINESS_SECONDS and _was_ready(readiness, visit):
            words = f"{visit}\n    is {found.stale_seconds:.1f} s older than {later}"
            verdict.add("stale answers", words, history.around(visit.began, visit.domain))
    verdict.figures |= {
        "visits": f"{served:,}",
        "visits that failed at an edge that was killed or stopped": f"{in_flight}",
        "the stalest answer, of an edge that said so or not": f"{oldest:.1f} s",
    }


def judge_writes(history: History, verdict: Verdict, *, is_lossless: bool) -> None:
    """Judge refused writes, and flows that did not end; add counts, and how long no write succeeded.

    Without synchronous replication a failover may take what they are about.
    """
    writes = history.of("write")
    verdict.figures["writes answered with success"] = f"{sum(each.outcome == 'ok' for each in writes):,}"
    verdict.figures["… after attempts without an answer"] = (
        f"{sum(each.unanswered_at is not None for each in writes):,}"
    )
    flows = history.of("flow")
    verdict.figures["flows of the modal finished"] = f"{sum(each.outcome == 'ok' for each in flows)}"
    verdict.ask("flows")
    for each in flows:
        if each.outcome != "ok" and (is_lossless or not history.may_have_lost(each)):
            verdict.add("flows", f"{each}", history.around(each.ended, each.domain))
    verdict.ask("writes refused without reason")
    for each in writes:
        if each.outcome == "refused" and (is_lossless or not history.may_have_lost(each)):
            words, about = f"{each}", history.around(each.ended, each.domain)
            verdict.add("writes refused without reason", words, about)
    done = sorted(each.ended for each in writes if each.outcome == "ok")
    longest, at = max(((later - earlier, earlier) for earlier, later in pairwise(done)), default=(0, 0))
    during = [each.what for each in history.faults if each.began < at + longest and each.ended > at]
    verdict.figures["the longest time without a write"] = f"{longest:.1f} s ({', '.join(during) or 'without a fault'})"


def _is_hit(history: History, visit: Operation) -> bool:
    """Return whether something happened to the visit's edge in its time."""
    return any(
        visit.actor in fault.hits and fault.began <= visit.ended and visit.began <= fault.ended
        for fault in history.faults
    )


def _was_ready(readiness: dict[str, list[Operation]], visit: Operation) -> bool:
    """Return whether the edge said last before the visit, and first after it, that it is ready."""
    said = readiness.get(visit.actor, [])
    index = bisect_right([each.ended for each in said], visit.began)
    about = said[max(0, index - 1) : index + 1]
    return bool(about) and all(each.outcome == "ok" for each in about)


def _grouped(operations: Iterable[Operation], key: Callable[[Operation], str]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for each in operations:
        found.setdefault(key(each), []).append(each)
    return found


def _by_domain(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    return _grouped(operations, lambda each: each.domain)


def _by_actor(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    return _grouped(operations, lambda each: each.actor)
