"""Limits have one default, wherever they are made."""

from __future__ import annotations

from common.db.ca_ledger import Limits
from common.settings import Settings
from edge.http.request import HeadLimits
from edge.proxy.worker_limits import WorkerLimits


def test_limits_made_without_settings_are_those_of_default_settings() -> None:
    assert WorkerLimits.of(Settings()).head == HeadLimits()
    assert Limits.of(Settings()) == Limits()
