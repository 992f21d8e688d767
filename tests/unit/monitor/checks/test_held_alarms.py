"""Whose alarms are believed when many domains lose records at once."""

from __future__ import annotations

import pytest

from monitor.checks.held_alarms import LossTally


def tally(**applications: tuple[int, int]) -> LossTally:
    """By application: domains turned, domains checked again."""
    return LossTally(
        rechecked={name: rechecked for name, (_, rechecked) in applications.items()},
        turned={name: turned for name, (turned, _) in applications.items()},
    )


def test_an_applications_own_mass_loss_is_held() -> None:
    assert tally(a=(60, 60)).holds("a")
    assert tally(a=(60, 100), b=(0, 100)).holds("a")


def test_few_losses_and_small_shares_are_believed() -> None:
    assert not tally(a=(49, 49)).holds("a")
    assert not tally(a=(60, 300)).holds("a")


@pytest.mark.parametrize("of_third", [(1, 10), (1, 1), (10, 10)])
@pytest.mark.parametrize("offenders", [1, 2, 5])
def test_mass_losses_of_others_hold_no_alarm_of_another_application(of_third: tuple[int, int], offenders: int) -> None:
    losses = {f"offender{number}": (60, 80) for number in range(offenders)}
    both = tally(**losses, third=of_third)
    assert not both.holds("third")
    assert all(both.holds(name) for name in losses)


def test_loss_of_all_there_is_is_held() -> None:
    losses = tally(a=(60, 60), b=(60, 60), third=(1, 1))
    assert all(losses.holds(name) for name in ("a", "b", "third"))


def test_many_small_losers_do_not_hold_an_application_that_lost_little() -> None:
    losses = {f"small{number}": (10, 10) for number in range(300)}
    assert not tally(**losses, third=(1, 10)).holds("third")


def test_loss_that_most_small_applications_share_is_held() -> None:
    """Ours, most likely: a resolver that fails for everyone."""
    losses = {f"small{number}": (1, 1) for number in range(60)}
    assert tally(**losses).holds("small1")
    assert tally(**losses, large=(500, 500), fine=(0, 100)).holds("small1")


def test_loss_that_few_small_applications_share_is_believed() -> None:
    losses = {f"small{number}": (10, 10) for number in range(10)}
    fine = {f"fine{number}": (0, 10) for number in range(10)}
    assert not tally(**losses, **fine).holds("small1")
