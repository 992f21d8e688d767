"""What is remembered of Domain Connect providers, for how long, and how much."""

from __future__ import annotations

from common.connect.domain_connect.recent import RecentAnswers


def test_an_answer_counts_for_minutes_and_an_error_for_seconds() -> None:
    recent = RecentAnswers()
    recent.keep("https://a.test/settings", 200, b"{}", 1000.0)
    recent.keep("https://b.test/settings", 502, b"", 1000.0)
    assert recent.find("https://a.test/settings", 1299.0) == (200, b"{}")
    assert recent.find("https://a.test/settings", 1300.0) is None
    assert (recent.find("https://b.test/settings", 1009.0), recent.find("https://b.test/settings", 1010.0)) == (
        (502, b""),
        None,
    )
    recent.note_silence("c.test:443", 1000.0)
    assert [recent.is_silent("c.test:443", at) for at in (1009.0, 1010.0)] == [True, False]
    assert not recent.is_silent("a.test", 1000.0)


def test_what_is_remembered_is_bounded() -> None:
    recent = RecentAnswers()
    recent.keep("https://long.test", 200, b"x" * 5000, 0.0)
    assert recent.find("https://long.test", 1.0) is None
    for number in range(2001):
        recent.keep(f"https://{number}.test", 200, b"", 0.0)
        recent.note_silence(f"{number}.test", 0.0)
    assert recent.find("https://0.test", 1.0) is None
    assert recent.find("https://2000.test", 1.0) == (200, b"")
    assert [recent.is_silent(f"{number}.test", 1.0) for number in (0, 2000)] == [False, True]
