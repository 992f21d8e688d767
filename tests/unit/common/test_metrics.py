from __future__ import annotations

import orjson
import pytest

from common.exposition import render
from common.metrics import Aggregate, Family, Kind, add_up


def answers(**by_status: float) -> Family:
    return Family("answers", "Answers.", "counter", ("status",), samples={(k,): [v] for k, v in by_status.items()})


def seconds(*numbers: float) -> Family:
    return Family("seconds", "Time.", "histogram", bounds=(0.1, 1.0), samples={(): list(numbers)})


def test_families_travel_as_json() -> None:
    for family in (answers(a=1, b=2), seconds(1, 2, 3, 4.5)):
        assert Family.from_plain(orjson.loads(orjson.dumps(family.to_plain()))) == family


def test_adding_up_goes_label_by_label_and_leaves_the_parts_alone() -> None:
    first, second = answers(ok=1), answers(ok=2, bad=3)
    assert add_up([first, second]) == [answers(ok=3, bad=3)]
    assert first == answers(ok=1)


def test_counts_of_a_process_outlive_it_and_its_gauges_do_not() -> None:
    aggregate = Aggregate()
    aggregate.report(1, [answers(ok=5), Family.of("open", "Open.", "gauge", 7)])
    aggregate.report(1, [answers(ok=6), Family.of("open", "Open.", "gauge", 8)])
    aggregate.report(2, [answers(ok=10), Family.of("open", "Open.", "gauge", 1)])
    aggregate.retire(1)
    aggregate.retire(1)
    assert aggregate.families() == [answers(ok=16), Family.of("open", "Open.", "gauge", 1)]


@pytest.mark.parametrize(("kind", "combined"), [("gauge", 9), ("maximum", 6), ("minimum", 3)])
def test_gauges_of_several_processes_are_combined_by_their_kind(kind: Kind, combined: float) -> None:
    families = [Family.of("each", "Each.", kind, value) for value in (3, 6)]
    assert add_up(families) == [Family.of("each", "Each.", kind, combined)]
    assert "# TYPE each gauge" in render(families[:1]).decode()
    aggregate = Aggregate()
    aggregate.report(1, families)
    aggregate.retire(1)
    assert aggregate.families() == []


def test_prometheus_text() -> None:
    text = render([answers(ok=3), seconds(1, 2, 3, 4.5), Family.of("open", "Open.", "gauge", 2)]).decode()
    assert 'answers_total{status="ok"} 3.0' in text
    assert 'seconds_bucket{le="0.1"} 1.0' in text
    assert 'seconds_bucket{le="1.0"} 3.0' in text
    assert 'seconds_bucket{le="+Inf"} 6.0' in text
    assert "seconds_count 6.0" in text
    assert "seconds_sum 4.5" in text
    assert "open 2.0" in text
