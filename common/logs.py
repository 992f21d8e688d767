"""Structured logs on standard error: a constant message plus fields, one JSON object a line.

A line has ``logger`` (the module), the fields, ``event`` (the message), ``role``, ``level``, ``timestamp`` (UTC) and,
for an error with a traceback, ``exception``; a line about work that a request caused has its ``request_id``. Never
pass a token, a key or a body as a field. `configure` is called once by each role's ``__main__``; a process that does
not call it logs text.
`logging` itself is not used: these lines have no handlers, propagation or settings that a dependency can change.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from common.actors import current_cause

_COLOURS = {logging.DEBUG: 32, logging.INFO: 32, logging.WARNING: 33, logging.ERROR: 31}  # ECMA-48 SGR


@dataclass(slots=True)
class _LogOutput:
    """Writes the lines of this process; one a process, as standard error is. Changed by `configure` only."""

    role: str | None = None
    least_level: int = logging.INFO
    is_human: bool = True

    def write(self, level: int, entry: dict[str, Any]) -> None:
        line = _render_text(level, entry) if self.is_human else _render_json(entry)
        with suppress(OSError):  # a file on a full disk: a line is lost, and what the process does goes on
            sys.stderr.write(line + "\n")  # one write, so that the lines of threads do not mix
            sys.stderr.flush()


_output = _LogOutput()


def configure(role: str, *, level: str = "info", human: bool | None = None) -> None:
    """Send logs to standard error.

    `level`: the name of the least severe level that is logged. `human`: coloured text instead of JSON; by default
    when standard error is a terminal.
    """
    _output.role = role
    _output.least_level = logging.getLevelNamesMapping()[level.upper()]
    _output.is_human = sys.stderr.isatty() if human is None else human


class Logger:
    """Writes the lines of one module; immutable. `exc_info`: an exception, or True for the one being handled."""

    def __init__(self, name: str) -> None:
        self._name = name

    def log(self, level: int, message: str, /, **fields: Any) -> None:
        """Log at a level that the caller determines, one of `logging`'s numbers."""
        self._log(level, message, fields)

    def debug(self, message: str, /, **fields: Any) -> None:
        """Log details that only help to find an error in the program."""
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Log an event of normal operation."""
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        """Log an event that may need an operator's attention."""
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """Log a failure."""
        self._log(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: Any) -> None:
        """Log an error with the traceback of the exception being handled."""
        self._log(logging.ERROR, message, {"exc_info": True} | fields)

    def _log(self, level: int, message: str, fields: dict[str, Any]) -> None:
        if level < _output.least_level:
            return
        entry = {"logger": self._name} | fields | {"event": message}
        error = entry.pop("exc_info", None)
        cause = current_cause()
        if cause is not None:
            entry.setdefault("request_id", cause)
        if _output.role is not None:
            entry["role"] = _output.role
        entry["level"] = logging.getLevelName(level).lower()
        entry["timestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if error is True:
            error = sys.exception()
        if isinstance(error, BaseException):
            entry["exception"] = "".join(traceback.format_exception(error)).rstrip("\n")
        _output.write(level, entry)


def get_logger(name: str) -> Logger:
    """Return a logger whose lines name the module."""
    return Logger(name)


def _render_json(entry: dict[str, Any]) -> str:
    try:
        return orjson.dumps(entry, default=str).decode()
    except TypeError:  # for example a surrogate from a file name, or an integer of more than 64 bits
        return orjson.dumps({field: ascii(value) for field, value in entry.items()}).decode()


def _render_text(level: int, entry: dict[str, Any]) -> str:
    """Render a line as ``time [level] message field=value …``, with control characters escaped.

    The traceback follows, if there is one.
    """
    fields = dict(entry)
    message, name, timestamp = fields.pop("event"), fields.pop("level"), fields.pop("timestamp")
    exception = fields.pop("exception", None)
    words = [f"\x1b[2m{timestamp}\x1b[0m [\x1b[{_COLOURS[level]};1m{name:<9}\x1b[0m] \x1b[1m{message:<30}\x1b[0m"]
    words += (f"\x1b[36m{field}\x1b[0m=\x1b[35m{_text(fields[field])}\x1b[0m" for field in sorted(fields))
    return " ".join(words) + (f"\n{exception}" if exception else "")


def _text(value: Any) -> str:
    is_plain = isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value
    return value if is_plain else ascii(value)
