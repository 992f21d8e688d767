"""Structured logs on standard error: a constant message plus fields, one JSON object a line.

Never pass a token, a key or a body as a field. `configure` is called once by each role's ``__main__``.
"""

from __future__ import annotations

import logging
import sys
from typing import cast

import orjson
import structlog


def configure(role: str, *, level: int = logging.INFO, human: bool | None = None) -> None:
    """Send logs to standard error.

    `human`: coloured text instead of JSON; by default when standard error is a terminal.
    """
    if human is None:
        human = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if human
        else structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event, default=str).decode())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(role=role)


def get_logger(room: str) -> structlog.typing.FilteringBoundLogger:
    """A logger whose lines say which room (module) speaks."""
    return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger(room=room))
