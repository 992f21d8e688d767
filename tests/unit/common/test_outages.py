"""An outage of the database is one line, however much fails by it."""

from __future__ import annotations

import logging

from common.db.outages import OutageLog, is_outage, level_of
from common.errors import DatabaseBusy, DatabaseUnavailable, OperatorError, ReadOnlyDatabase
from tests.captured_logs import capture_logs

AWAY = DatabaseUnavailable("the database cannot be reached: connection refused")


def test_an_outage_is_one_line_and_its_end_another() -> None:
    outages = OutageLog()
    with capture_logs() as lines:
        for second in range(100):
            outages.note_failure(AWAY, float(second))
        outages.note_answer(100.0)
        outages.note_failure(AWAY, 101.0)  # another session meets the same outage late
        outages.note_answer(102.0)
        outages.note_answer(300.0)
    assert [line["event"] for line in lines] == ["the database is unavailable", "the database answers again"]
    assert lines[0]["error"] == str(AWAY)
    assert (lines[1]["seconds"], lines[1]["failures"]) == (100.0, 100)


def test_the_next_outage_is_another_line() -> None:
    outages = OutageLog()
    with capture_logs() as lines:
        for began in (0.0, 1000.0):
            outages.note_failure(AWAY, began)
            outages.note_answer(began + 5)
    assert [line["seconds"] for line in lines if "seconds" in line] == [5.0, 5.0]


def test_an_outage_in_which_little_is_asked_stays_one() -> None:
    outages = OutageLog()
    with capture_logs() as lines:
        for minute in range(30):
            outages.note_failure(AWAY, 60.0 * minute)
    assert len(lines) == 1


def test_what_postgres_gave_up_is_no_outage() -> None:
    assert is_outage(AWAY)
    assert is_outage(ReadOnlyDatabase("a standby"))
    for error in (DatabaseBusy("a lock"), OperatorError("no schema")):
        assert not is_outage(error)
        assert level_of(error) == logging.WARNING
    assert level_of(AWAY) == logging.DEBUG
