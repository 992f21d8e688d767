"""Structured logs on standard error: a constant message plus fields, one JSON object a line.

Never pass a token, a key or a body as a field. `configure` is called once by each role's ``__main__``.
The library is loaded with the first line: it imports rich where that is installed, which takes a sixth of a process'
start, and most processes log nothing at start.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cached_property, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import orjson

if TYPE_CHECKING:
    import structlog


def configure(role: str, *, level: str = "info", human: bool | None = None) -> None:
    """Send logs to standard error.

    `level`: the name of the least severe level that is logged. `human`: coloured text instead of JSON; by default
    when standard error is a terminal.
    """
    _library.prepare = partial(
        _configure, role, logging.getLevelNamesMapping()[level.upper()], sys.stderr.isatty() if human is None else human
    )


def get_logger(room: str) -> structlog.typing.FilteringBoundLogger:
    """Return a logger whose lines name the module."""
    return cast("structlog.typing.FilteringBoundLogger", _Logger(room))


def load() -> None:
    """Load the library before the first line: later there may be no free file descriptor to read it with."""
    _ = _library.structlog


class _Library:
    """structlog, configured on first use by the last `configure` call. One per process, as structlog's own state is."""

    def __init__(self) -> None:
        self.prepare: Callable[[], None] = lambda: None

    @cached_property
    def structlog(self) -> ModuleType:
        import structlog  # noqa: PLC0415

        self.prepare()
        return structlog


_library = _Library()


class _Logger:
    def __init__(self, room: str) -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        return getattr(_library.structlog.get_logger(room=self._room), name)


def _configure(role: str, level: int, human: bool) -> None:
    import structlog  # noqa: PLC0415

    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if human
        else structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event, default=str).decode())
    )
    structlog.configure(
        processors=[
            lambda _logger, _method, event: {**event, "role": role},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
