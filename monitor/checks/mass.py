"""The mass guard's decision: when so many domains lose records at once, we are likelier wrong than they are. Pure."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_SECONDS = 600.0
FEWEST_DOMAINS = 50
LARGEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Tally:
    """Domains looked at again within the last `WINDOW_SECONDS`, and those of them that turned from present to
    missing; first checks count in neither."""

    rechecked: int
    turned: int

    @property
    def is_mass(self) -> bool:
        return self.turned >= FEWEST_DOMAINS and self.turned > LARGEST_SHARE * self.rechecked
