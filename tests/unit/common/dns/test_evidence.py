"""Evidence stays small, and keeps what matters."""

from datetime import UTC, datetime, timedelta

import orjson

from common.dns import Answer, Outcome
from common.dns.evidence import MOST_STATEMENTS, Statement, as_json

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def statement(number: int, answer: Answer) -> Statement:
    return Statement(
        NOON + timedelta(seconds=number), "resolver", "192.0.2.53:53", (f"r{number}.example", "TXT"), answer
    )


def test_it_says_who_answered_what_and_when() -> None:
    assert as_json([statement(1, Answer(Outcome.RECORDS, ("v=spf1 -all",)))], ()) == [
        {
            "at": "2026-01-01T12:00:01.000+00:00",
            "role": "resolver",
            "server": "192.0.2.53:53",
            "name": "r1.example",
            "type": "TXT",
            "outcome": "records",
            "values": ["v=spf1 -all"],
        }
    ]


def test_it_is_bounded_and_keeps_what_was_doubted() -> None:
    long = Answer(Outcome.RECORDS, tuple(["x" * 5000] * 50))
    said = [statement(number, long) for number in range(500)]
    kept = as_json(said, {("r450.example", "TXT"), ("r499.example", "TXT")})

    assert len(kept) == MOST_STATEMENTS
    assert [each["name"] for each in kept[-2:]] == ["r450.example", "r499.example"]
    assert [each["at"] for each in kept] == sorted(each["at"] for each in kept)
    assert len(orjson.dumps(kept)) < 40_000
