"""Findings: what a check saw, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict


class FindingState(StrEnum):
    """How what was checked stands."""

    OK = "ok"
    NOTE = "note"  # works, or may; the operator should know
    BROKEN = "broken"


class ShownFinding(TypedDict):
    """A finding as `frontage doctor --json` prints it."""

    subject: str
    state: FindingState
    seen: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Made by `ok`, `note`, `broken` and `from_error`, so that whatever is not ok has a remedy."""

    subject: str
    state: FindingState
    seen: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """Return what was seen, with the remedy where there is one."""
        return f"{self.seen}: {self.remedy}" if self.remedy else self.seen

    def as_json(self) -> ShownFinding:
        """Return the finding as a JSON object."""
        return {"subject": self.subject, "state": self.state, "seen": self.seen, "remedy": self.remedy}


def ok(subject: str, seen: str) -> Finding:
    """Return a finding of what is well."""
    return Finding(subject, FindingState.OK, seen)


def note(subject: str, seen: str, remedy: str) -> Finding:
    """Return a finding of what an operator should know."""
    return Finding(subject, FindingState.NOTE, seen, remedy)


def broken(subject: str, seen: str, remedy: str) -> Finding:
    """Return a finding of what does not work."""
    return Finding(subject, FindingState.BROKEN, seen, remedy)


def from_error(subject: str, error: Exception) -> Finding:
    """Return the finding of an error, which has the form ``problem: remedy`` where there is a remedy to name."""
    seen, _, remedy = str(error).partition(": ")
    return broken(subject, seen, remedy or "put that right, then run `frontage doctor` again")
