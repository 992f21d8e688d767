"""What the code under test logs, as entries instead of lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from common import logs


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    entries: list[dict[str, Any]] = []
    with patch.object(logs._LogOutput, "write", lambda _output, _level, entry: entries.append(entry)):
        yield entries
