"""Limits have one default, wherever they are made, and the handbook states it."""

from __future__ import annotations

from pathlib import Path

from common.db.ca_ledger import Limits
from common.db.domains import MOST_AGAIN
from common.db.orders import RENEWALS_A_DAY
from common.settings import Settings
from edge.http.request import HeadLimits
from edge.proxy.worker_limits import WorkerLimits
from tests.children import ROOT


def test_limits_made_without_settings_are_those_of_default_settings() -> None:
    assert WorkerLimits.of(Settings()).head == HeadLimits()
    assert Limits.of(Settings()) == Limits()


def test_the_handbook_states_how_often_a_domain_is_enrolled_and_renewed_in_a_day() -> None:
    power, secure = ((Path(ROOT) / f"api/handbook/{page}.md").read_text("utf-8") for page in ("power", "secure"))
    assert f"powered again {MOST_AGAIN} times in 24 hours" in power
    assert f"POST tries again at once, {MOST_AGAIN} times in 24 hours" in secure
    assert f"PUT asks for it now, {RENEWALS_A_DAY} times in 24 hours" in secure
