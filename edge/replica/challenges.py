"""Reads what a CA looks for in the delegated challenge zone from the replica."""

from __future__ import annotations

from typing import Protocol

from edge.replica.records import ChallengeRecord, RecordReader, RecordUnusable, read_record


class FollowingReader(RecordReader, Protocol):
    """A reader that knows whether its replica is current: `edge.replica.reader.ReplicaReader`."""

    def is_cut_off(self) -> bool:
        """Return whether Postgres has not answered this node for a whole lease period."""


def read_challenge_values(reader: FollowingReader, label: str) -> tuple[str, ...]:
    """Return the TXT values of the label's running order, none for a label without one.

    Raises: `RecordUnusable`, also for a label that a replica which is cut off may not know.
    """
    content = reader.get_raw("challenge", label)
    if content is not None:
        return read_record(ChallengeRecord, content).values
    if reader.is_cut_off():
        raise RecordUnusable("the replica is cut off from Postgres")
    return ()
