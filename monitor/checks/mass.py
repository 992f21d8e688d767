"""The mass guard's decision: when so many domains lose records at once, we are likelier wrong than they are. Pure.

Rules
    too many are at least `FEWEST_DOMAINS`, and more than `LARGEST_SHARE` of those looked at again
    one application alone cannot hold up another's alarms: where all together are too many, but would not be without
        the one other that lost the most, an application that itself lost no such share is believed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WINDOW_SECONDS = 600.0
FEWEST_DOMAINS = 50
LARGEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Tally:
    """Domains looked at again within the last `WINDOW_SECONDS`, and those of them that turned from present to
    missing, each by application; first checks count in neither."""

    rechecked: Mapping[str, int]
    turned: Mapping[str, int]

    @property
    def is_mass(self) -> bool:
        return _is_mass(sum(self.turned.values()), sum(self.rechecked.values()))

    def holds(self, application_id: str) -> bool:
        """Whether alarms of this application are too many to be believed."""
        if not self.is_mass:
            return False
        others = (each for each in self.turned if each != application_id)
        worst = max(others, key=lambda each: self.turned[each], default=None)
        turned, rechecked = (
            sum(count for each, count in counts.items() if each != worst) for counts in (self.turned, self.rechecked)
        )
        ours = self.turned.get(application_id, 0), self.rechecked.get(application_id, 0)
        return _is_mass(turned, rechecked) or _is_large_share(*ours)


def _is_mass(turned: int, rechecked: int) -> bool:
    return turned >= FEWEST_DOMAINS and _is_large_share(turned, rechecked)


def _is_large_share(turned: int, rechecked: int) -> bool:
    return turned > LARGEST_SHARE * rechecked
