"""The mass guard: decides which alarms to hold back because too many domains lost records at once.

A failure of ours (a resolver, a network) that looks like lost records strikes many applications at once. One
application's losses say something about that application only; so each is judged by its own, and others count one each.

Rules
    losses are a mass when they are at least `FEWEST_DOMAINS` and more than `LARGEST_SHARE` of the domains checked again
    unless all applications' losses together are a mass, every alarm is believed
    an application that lost no more than `LARGEST_SHARE` of its own domains is believed
    an application whose own losses are a mass is not believed, until the next round or an operator confirms them
    any other one is believed, unless hardly a domain of anyone was found unchanged (fewer than `FEWEST_UNCHANGED`), or
        most of the other applications have lost such a share as well; of these, the ones whose losses are a mass of
        their own count neither way
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WINDOW_SECONDS = 600.0
FEWEST_DOMAINS = 50
LARGEST_SHARE = 0.2
FEWEST_UNCHANGED = 10


@dataclass(frozen=True, slots=True)
class LossTally:
    """Domains checked again within the last `WINDOW_SECONDS`, and those that turned from present to missing.

    Both by application; first checks count in neither.
    """

    rechecked: Mapping[str, int]
    turned: Mapping[str, int]

    @property
    def is_mass(self) -> bool:
        """Return whether all applications' losses together are improbably many."""
        return _is_mass(sum(self.turned.values()), sum(self.rechecked.values()))

    def holds(self, application_id: str) -> bool:
        """Return whether alarms of this application are too many to be believed."""
        if not self.is_mass or not self._has_large_loss(application_id):
            return False
        unchanged = sum(self.rechecked.values()) - sum(self.turned.values())
        if self._has_mass_loss(application_id) or unchanged < FEWEST_UNCHANGED:
            return True
        others = [each for each in self.rechecked if each != application_id and not self._has_mass_loss(each)]
        return sum(map(self._has_large_loss, others)) > len(others) / 2

    def _has_large_loss(self, application_id: str) -> bool:
        return _is_large_share(*self._counts(application_id))

    def _has_mass_loss(self, application_id: str) -> bool:
        return _is_mass(*self._counts(application_id))

    def _counts(self, application_id: str) -> tuple[int, int]:
        return self.turned.get(application_id, 0), self.rechecked.get(application_id, 0)


def _is_mass(turned: int, rechecked: int) -> bool:
    return turned >= FEWEST_DOMAINS and _is_large_share(turned, rechecked)


def _is_large_share(turned: int, rechecked: int) -> bool:
    return turned > LARGEST_SHARE * rechecked
