"""What an application's settings take, whichever way they come."""

from __future__ import annotations

import pytest

from api.rules.application_settings import MOST_ROOT_PATHS, InvalidSetting, read_root_paths


def test_root_paths_are_bounded_in_number_and_length() -> None:
    """Each costs every request of the application a comparison, at the expense of other tenants."""
    assert len(read_root_paths(["/a"] * MOST_ROOT_PATHS)) == MOST_ROOT_PATHS
    for paths in (["/a"] * (MOST_ROOT_PATHS + 1), ["/" + "a" * 1024]):
        with pytest.raises(InvalidSetting, match="at most"):
            read_root_paths(paths)
