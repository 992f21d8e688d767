"""For how long a migration waits for other sessions."""

from __future__ import annotations

from common.db.migration_blockers import Blockers, BlockingSession

THIEF = BlockingSession(7, "edge_one", "psql", "192.0.2.1")


def test_a_session_that_blocks_is_shown_once_and_given_up_for_in_time() -> None:
    shown: list[str] = []
    blockers = Blockers(shown.append, 300.0)
    assert not blockers.observe([THIEF], 0.0)
    assert shown == []
    assert not any(blockers.observe([THIEF], float(second)) for second in range(1, 300))
    assert shown == ["waiting for session 7 of the login edge_one (psql, 192.0.2.1)"]
    assert blockers.observe([THIEF], 300.0)
    assert "select pg_terminate_backend(7)" in blockers.advice


def test_sessions_that_block_one_after_the_other_are_waited_for() -> None:
    blockers = Blockers(lambda _words: None, 300.0)
    for second in range(1000):
        assert not blockers.observe([BlockingSession(second // 100, "backup", "", None)], float(second))


def test_a_session_that_blocks_again_after_a_while_is_waited_for_anew() -> None:
    blockers = Blockers(lambda _words: None, 300.0)
    assert not blockers.observe([THIEF], 0.0)
    assert not blockers.observe([THIEF], 310.0)
    assert not blockers.observe([], 311.0)
