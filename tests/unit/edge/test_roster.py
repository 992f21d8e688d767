"""Who accepts from which pair, decided without a process."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edge.process.roster import (
    HUNG_SECONDS,
    LONGEST_PAUSE_SECONDS,
    STABLE_SECONDS,
    START_SECONDS,
    CloseListeners,
    Kill,
    Roster,
    Send,
    Start,
    WorkerPhase,
    pause_seconds,
)
from edge.process.worker_messages import Adopt, Drain, Finish, Release

GRACE = 10.0
HANDOVER = 1000.0


def serving(pairs: int) -> Roster:
    """A roster whose workers 1..pairs serve pairs 0..pairs-1, at time 0."""
    roster = opened(pairs)
    roster.plan(0)
    for number in range(1, pairs + 1):
        roster.ready(number, 0)
    assert roster.plan(0) == [Send(number, Adopt(number - 1)) for number in range(1, pairs + 1)]
    return roster


def opened(pairs: int) -> Roster:
    roster = Roster(pairs, grace_seconds=GRACE, handover_seconds=HANDOVER)
    roster.open()
    return roster


def beat_all(roster: Roster, now: float, *, is_idle: bool = False) -> None:
    for number in roster.workers:
        roster.beat(number, now, is_idle=is_idle)


def test_every_gate_gets_a_worker_and_nothing_twice() -> None:
    roster = opened(2)
    assert roster.plan(0) == [Start(1, 0), Start(2, 1)]
    assert roster.plan(0) == []
    assert not roster.is_full


def test_first_to_serve_adopts_the_gates_of_those_that_start() -> None:
    roster = opened(2)
    roster.plan(0)
    roster.ready(1, 0)
    assert roster.plan(0) == [Send(1, Adopt(0)), Send(1, Adopt(1))]
    roster.ready(2, 0)
    assert roster.plan(0) == [Send(2, Adopt(1)), Send(1, Release(1))]
    assert roster.is_full


def test_dead_worker_s_gate_is_adopted_before_its_successor_starts() -> None:
    roster = serving(2)
    roster.exited(1, STABLE_SECONDS)
    beat_all(roster, STABLE_SECONDS)
    assert roster.plan(STABLE_SECONDS) == [Send(2, Adopt(0)), Start(3, 0)]
    roster.ready(3, STABLE_SECONDS)
    assert roster.plan(STABLE_SECONDS) == [Send(3, Adopt(0)), Send(2, Release(0))]


def test_hung_worker_s_gate_is_adopted_before_it_is_killed() -> None:
    roster = serving(2)
    now = HUNG_SECONDS + 0.1
    roster.beat(1, now, is_idle=False)
    adopt, kill, start = roster.plan(now)
    assert (adopt, start) == (Send(1, Adopt(1)), Start(3, 1))
    assert isinstance(kill, Kill)
    assert kill.worker == 2
    assert roster.plan(now) == []


def test_nobody_is_judged_by_the_time_the_supervisor_itself_stood_still() -> None:
    roster = serving(2)
    roster.supervisor_stalled(60)
    assert roster.plan(60) == []


def test_worker_that_never_becomes_ready_is_killed() -> None:
    roster = opened(1)
    roster.plan(0)
    assert roster.plan(START_SECONDS) == []
    kill = roster.plan(START_SECONDS + 1)[0]
    assert isinstance(kill, Kill)


def test_gates_of_a_dead_adopter_pass_to_the_next() -> None:
    roster = serving(3)
    roster.exited(1, 0)
    assert Send(2, Adopt(0)) in roster.plan(0)
    roster.exited(2, 0)
    assert {Send(3, Adopt(0)), Send(3, Adopt(1))} <= set(roster.plan(0))


def test_orphans_are_spread_over_the_living() -> None:
    roster = serving(4)
    roster.exited(1, 0)
    roster.exited(2, 0)
    told = [work for work in roster.plan(0) if isinstance(work, Send)]
    assert {work.worker for work in told} == {3, 4}


def test_pause_grows_while_workers_fail_and_is_forgotten_after_a_stable_one() -> None:
    assert pause_seconds(0) == 0
    pauses = [pause_seconds(failures) for failures in range(1, 50)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_SECONDS

    roster = opened(1)
    roster.plan(0)
    roster.exited(1, 0)
    assert roster.plan(pause_seconds(1) / 2) == []
    assert roster.plan(pause_seconds(1)) == [Start(2, 0)]
    roster.ready(2, 1)
    roster.exited(2, 1 + STABLE_SECONDS)
    assert roster.plan(1 + STABLE_SECONDS) == [Start(3, 0)]


def test_renewal_goes_one_by_one_and_the_successor_serves_first() -> None:
    roster = serving(2)
    roster.renew()
    assert roster.plan(0) == [Start(3, 0)]
    assert roster.plan(0) == []
    roster.ready(3, 0)
    assert roster.plan(0) == [Send(3, Adopt(0)), Send(1, Finish(HANDOVER))]
    assert roster.plan(0) == []
    roster.exited(1, 0)
    assert roster.plan(0) == [Start(4, 1)]
    roster.ready(4, 0)
    assert roster.plan(0) == [Send(4, Adopt(1)), Send(2, Finish(HANDOVER))]
    roster.exited(2, 0)
    assert roster.plan(0) == []
    assert roster.is_full


def test_renewal_whose_successor_fails_leaves_the_old_worker_serving() -> None:
    roster = serving(1)
    roster.renew()
    assert roster.plan(0) == [Start(2, 0)]
    roster.exited(2, 0)
    assert roster.plan(0) == []
    assert roster.is_full
    assert roster.plan(pause_seconds(1)) == [Start(3, 0)]


def test_drain_goes_on_accepting_until_all_are_idle() -> None:
    roster = serving(2)
    roster.drain(0)
    assert roster.plan(0) == [Send(1, Drain()), Send(2, Drain())]
    roster.beat(1, 1, is_idle=True)
    roster.beat(2, 1, is_idle=False)
    assert roster.plan(1) == []
    roster.beat(2, 2, is_idle=True)
    assert roster.plan(2) == [Send(1, Finish(8.0)), Send(2, Finish(8.0)), CloseListeners()]
    roster.exited(1, 2)
    assert not roster.is_over
    roster.exited(2, 2)
    assert roster.plan(2) == []
    assert roster.is_over


def test_drain_ends_with_the_grace_and_gives_what_runs_a_last_moment() -> None:
    roster = serving(1)
    roster.drain(0)
    roster.plan(0)
    roster.beat(1, GRACE, is_idle=False)
    late = GRACE + 0.25  # the supervisor looks four times a second
    assert roster.plan(late) == [Send(1, Finish(1.0)), CloseListeners()]
    assert roster.plan(late + 0.25) == []
    roster.beat(1, GRACE + 4, is_idle=False)
    assert roster.plan(GRACE + 4) == [Kill(1, "did not finish in time")]


def test_worker_that_starts_while_draining_is_not_waited_for() -> None:
    roster = opened(1)
    roster.plan(0)
    roster.drain(0)
    assert roster.plan(0) == [Kill(1, "came too late to serve"), CloseListeners()]


def test_worker_that_dies_while_draining_is_not_replaced() -> None:
    roster = serving(2)
    roster.drain(0)
    roster.plan(0)
    roster.exited(1, 0)
    assert roster.plan(0) == [Send(2, Adopt(0))]


def test_nobody_accepts_until_the_roster_is_open() -> None:
    roster = Roster(2, grace_seconds=GRACE, handover_seconds=HANDOVER)
    roster.plan(0)
    roster.ready(1, 0)
    assert roster.plan(0) == []
    assert not roster.is_prepared
    roster.ready(2, 0)
    assert roster.plan(0) == []
    assert roster.is_prepared
    assert not roster.is_full
    roster.open()
    assert roster.plan(0) == [Send(1, Adopt(0)), Send(2, Adopt(1))]
    assert roster.is_full


def test_leaving_accepts_no_more_at_once_and_takes_its_time() -> None:
    roster = serving(2)
    roster.leave(0)
    commands = [Send(number, command) for command in (Drain(), Finish(1000)) for number in (1, 2)]
    assert roster.plan(0) == [*commands, CloseListeners()]
    roster.exited(1, 1)
    beat_all(roster, 999)
    assert roster.plan(999) == []
    roster.exited(2, 999)
    assert roster.is_over


def test_stop_shortens_the_time_of_those_that_leave() -> None:
    roster = serving(1)
    roster.leave(0)
    roster.plan(0)
    beat_all(roster, 5)
    roster.drain(5)
    assert roster.plan(5) == [Send(1, Finish(GRACE))]
    beat_all(roster, 6)
    roster.drain(6)
    assert roster.plan(6) == []


@pytest.mark.parametrize("event", ["ready", "exited", "beat"])
def test_word_of_an_unknown_worker_changes_nothing(event: str) -> None:
    roster = serving(1)
    {
        "ready": lambda: roster.ready(99, 0),
        "exited": lambda: roster.exited(99, 0),
        "beat": lambda: roster.beat(99, 0, is_idle=True),
    }[event]()
    assert roster.plan(0) == []


class Edge(RuleBasedStateMachine):
    """A roster and the workers that handle_commands it, under any command of deaths, hangs and commands."""

    @initialize(pairs=st.integers(1, 4))
    def begin(self, pairs: int) -> None:
        self.now = 0.0
        self.pairs = pairs
        self.roster = opened(pairs)
        self.accepting: dict[int, set[int]] = {}
        self.hung: set[int] = set()
        self.killed: set[int] = set()
        self.handle_commands()

    def handle_commands(self) -> None:
        for work in self.roster.plan(self.now):
            match work:
                case Start(worker, _):
                    self.accepting[worker] = set()
                case Send(worker, Adopt(pair)):
                    self.accepting[worker].add(pair)
                case Send(worker, Release(pair)):
                    assert self.roster.workers[worker].pair != pair
                    self.accepting[worker].remove(pair)
                case Send(worker, Finish()):
                    self.accepting[worker].clear()
                case Kill(worker, _):
                    self.killed.add(worker)

    def pick(self, data: st.DataObject) -> int | None:
        return data.draw(st.sampled_from(sorted(self.roster.workers))) if self.roster.workers else None

    @rule(data=st.data())
    def worker_becomes_ready(self, data: st.DataObject) -> None:
        worker = self.pick(data)
        if worker and self.roster.workers[worker].phase is WorkerPhase.STARTING:
            self.roster.ready(worker, self.now)
            self.handle_commands()

    @rule(data=st.data())
    def worker_dies(self, data: st.DataObject) -> None:
        if worker := self.pick(data):
            del self.accepting[worker]
            self.hung.discard(worker)
            self.killed.discard(worker)
            self.roster.exited(worker, self.now)
            self.handle_commands()

    @rule(data=st.data())
    def worker_hangs(self, data: st.DataObject) -> None:
        if worker := self.pick(data):
            self.hung.add(worker)

    @rule()
    def renew(self) -> None:
        self.roster.renew()
        self.handle_commands()

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0]), steps=st.integers(1, 12))
    def time_passes(self, seconds: float, steps: int) -> None:
        for _ in range(steps):
            self.now += seconds
            for worker in set(self.accepting) - self.hung:
                self.roster.beat(worker, self.now, is_idle=True)
            self.handle_commands()

    @invariant()
    def every_gate_is_accepted_from_while_anyone_serves(self) -> None:
        trusted = {n for n, w in self.roster.workers.items() if w.phase is WorkerPhase.SERVING}
        if trusted:
            accepted = set().union(*(self.accepting[worker] for worker in trusted))
            assert accepted == set(range(self.pairs))

    @invariant()
    def a_gate_is_accepted_from_by_two_at_most(self) -> None:
        for pair in range(self.pairs):
            trusted = [n for n, w in self.roster.workers.items() if w.phase is WorkerPhase.SERVING]
            assert sum(pair in self.accepting[n] for n in trusted) <= 2

    @invariant()
    def silent_workers_are_killed(self) -> None:
        for number, worker in self.roster.workers.items():
            if worker.phase in {WorkerPhase.SERVING, WorkerPhase.FINISHING}:
                assert self.now - worker.last_beat_at <= HUNG_SECONDS
            if worker.phase is WorkerPhase.CONDEMNED:
                assert number in self.killed

    def teardown(self) -> None:
        """Left alone for a while, every pair has its own worker, and nobody accepts from another's."""
        if not hasattr(self, "roster"):
            return
        for _ in range(200):
            self.now += 1
            for worker in list(self.killed):
                self.killed.discard(worker)
                del self.accepting[worker]
                self.hung.discard(worker)
                self.roster.exited(worker, self.now)
            for number, worker_state in list(self.roster.workers.items()):
                if number in self.hung:
                    continue
                self.roster.beat(number, self.now, is_idle=True)
                if worker_state.phase is WorkerPhase.STARTING:
                    self.roster.ready(number, self.now)
                elif worker_state.phase is WorkerPhase.FINISHING:
                    del self.accepting[number]
                    self.roster.exited(number, self.now)
            self.handle_commands()
        assert self.roster.is_full
        assert sorted(pair for pairs in self.accepting.values() for pair in pairs) == list(range(self.pairs))


Edge.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_any_order_of_events = Edge.TestCase
