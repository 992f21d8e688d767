"""The proof that a replica holds what was written to it, while it is written to."""

from __future__ import annotations

from pathlib import Path
from random import Random

from common.db.feed import FeedEntry, Head, digest
from edge.replica.store import Store, Update

KEYS = 3000
ROUNDS = 120


def test_changes_during_a_proof_are_counted_in(tmp_path: Path) -> None:
    """Names are added, changed and removed, before and behind what is being read."""
    random = Random(11)
    store = Store(tmp_path / "replica")
    contents: dict[str, str] = {}
    checksum, proven = 0, 0
    try:
        for number in range(ROUNDS):
            changed: dict[str, str | None] = {
                f"power/d{random.randrange(KEYS)}.example": random.choice([None, f"{number}"])
            }
            if number == 0:
                changed = {f"power/d{index}.example": "{}" for index in range(KEYS)}
            for key, content in changed.items():
                if key in contents:
                    checksum ^= digest("route", key, contents.pop(key))
                if content is not None:
                    contents[key] = content
                    checksum ^= digest("route", key, content)
            update = Update(store)
            update.begin()
            update.put(FeedEntry("route", key, content) for key, content in changed.items())
            assert update.commit(Head("one", number + 1, checksum))
            found = store.prove()
            assert found is not False
            proven += found is True
        assert proven >= 10
        with store.environment.begin(write=True, db=store.copies[store.state.serving]) as transaction:
            transaction.put(b"route/power/foreign.example", b"{}")
        assert False in [store.prove() for _ in range(20)]
    finally:
        store.close()
