"""Who makes a change, and by which way, as the audit log states beside each change (`common.db.audit`).

Also the id of the request that causes it, which rows and log lines state.

The actor belongs to the request, command or batch that is being worked on. It is kept in a context variable, which each
task inherits and none shares, because every function that writes would otherwise pass it along without using it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["api", "dashboard", "command", "monitor"]


@dataclass(frozen=True, slots=True)
class Actor:
    """A person or program that makes changes.

    `name` is an application's id, a user's address, or the login name of the operator. `request_id` is found in the
    answer's ``X-Request-Id`` and in the log.
    """

    way: Way
    name: str
    request_id: str | None = None


_current: ContextVar[Actor | None] = ContextVar("frontage_actor", default=None)


def current_actor() -> Actor | None:
    """Return the actor of the work at hand.

    None outside a request, command or batch: what a process does by itself is no change to record.
    """
    return _current.get()


_cause: ContextVar[str | None] = ContextVar("frontage_cause", default=None)


def current_cause() -> str | None:
    """Return the request that the work at hand was claimed for (`caused_by`).

    None for work that no request asked for.
    """
    return _cause.get()


def current_request_id() -> str | None:
    """Return the ``X-Request-Id`` that rows and log lines of the work at hand state.

    It is that of the request being answered, or of the one that caused the order, delivery or batch being worked
    on; None for what a process or a command does by itself.
    """
    actor = _current.get()
    return _cause.get() if actor is None or actor.request_id is None else actor.request_id


@contextmanager
def caused_by(request_id: str | None) -> Iterator[None]:
    """Name this request in the rows made and the lines logged within the block."""
    token = _cause.set(request_id)
    try:
        yield
    finally:
        _cause.reset(token)


_earlier: ContextVar[tuple[str, ...]] = ContextVar("frontage_earlier_attempts", default=())


def earlier_request_ids() -> tuple[str, ...]:
    """Return the earlier attempts at the request being answered: they left no answer, and may have done it."""
    return _earlier.get()


@contextmanager
def repeating(request_ids: tuple[str, ...]) -> Iterator[None]:
    """Name the earlier attempts at what the block does."""
    token = _earlier.set(request_ids)
    try:
        yield
    finally:
        _earlier.reset(token)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Record the changes made within the block as this actor's."""
    token = _current.set(actor)
    try:
        yield
    finally:
        _current.reset(token)
