import re
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from common import logs
from tests.children import ROOT


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests of this process keep the output they had."""
    monkeypatch.setattr(logs, "_output", logs._LogOutput())


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [orjson.loads(line) for line in captured.err.splitlines()]


@pytest.mark.usefixtures("output")
def test_a_line_is_one_json_object_with_the_message_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("edge", human=False)
    logs.get_logger("edge.proxy").warning("no answer", server="192.0.2.1", tries=3, reason=ValueError("two\nlines"))
    (line,) = lines(capsys)
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    assert line == {
        "logger": "edge.proxy",
        "server": "192.0.2.1",
        "tries": 3,
        "reason": "two\nlines",
        "event": "no answer",
        "role": "edge",
        "level": "warning",
    }


@pytest.mark.usefixtures("output")
def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("edge", human=False, level="warning")
    log = logs.get_logger("edge")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    assert [(line["event"], line["level"]) for line in lines(capsys)] == [("c", "warning"), ("d", "error")]


@pytest.mark.usefixtures("output")
def test_tracebacks_of_the_exception_handled_or_given(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("edge", human=False)
    log = logs.get_logger("edge")
    try:
        raise ZeroDivisionError("division by zero")
    except ZeroDivisionError as error:
        given = error
        log.exception("handled", domain="shop.test")
        log.error("handled", exc_info=True)
    log.error("given", exc_info=given)
    log.error("without", exc_info=None)
    *with_traceback, without = lines(capsys)
    assert "exception" not in without
    assert "exc_info" not in without
    for line in with_traceback:
        assert line["level"] == "error"
        assert line["exception"].startswith("Traceback (most recent call last):\n")
        assert line["exception"].endswith("\nZeroDivisionError: division by zero")


@pytest.mark.usefixtures("output")
@pytest.mark.parametrize("value", ["a file \udcff", 1 << 70, {1: 2}])
def test_a_field_that_json_cannot_hold_does_not_raise(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("edge", human=False)
    logs.get_logger("edge").error("odd", value=value)
    assert ascii(value) in lines(capsys)[0]["value"]


@pytest.mark.usefixtures("output")
def test_text_for_people_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("edge", human=True)
    logs.get_logger("edge").info("request", path="/a\x1b[2J\nb", domain="shop.test")
    (line,) = capsys.readouterr().err.splitlines()
    assert "request" in line
    assert "shop.test" in line
    assert r"/a\x1b[2J\nb" in line


def test_a_logger_is_named_after_its_module_or_package() -> None:
    for source in (path for package in ("api", "common", "edge", "monitor") for path in (ROOT / package).rglob("*.py")):
        module = ".".join(source.relative_to(ROOT).with_suffix("").parts)
        for name in re.findall(r'get_logger\("([\w.]+)"\)', source.read_text()):
            assert f"{module}.".startswith(f"{name}."), f"{module} logs as {name}"


@pytest.mark.usefixtures("output")
def test_a_log_that_cannot_be_written_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with suppress(OSError), Path("/dev/full").open("w", buffering=1) as full:  # its close fails, too
        monkeypatch.setattr(sys, "stderr", full)
        logs.configure("edge", human=False)
        for _ in range(1000):
            logs.get_logger("edge.proxy").error("no answer")
