"""Decides in which order an origin's addresses are tried. Time and chance are passed in.

Sound addresses come first, in a random order, so that connections spread over them; IPv6 and IPv4 take turns, IPv6
first (RFC 8305 §4). Those that failed lately come last, the one that failed first before the others: where all of them
failed, all are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, takewhile, zip_longest
from typing import Final

from edge.routing.route import Origin
from edge.upstream.remembered import FAILED_SECONDS, Remembered

MAX_TRIED: Final = 8
"""Addresses that one attempt to connect may try. Those that failed are last in the next one."""


class AddressOrder:
    """Orders addresses for a worker's connector, which owns it. All times are monotonic seconds."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failed: Remembered[tuple[Origin, str]] = Remembered(FAILED_SECONDS)
        self.failure_count = 0

    def __repr__(self) -> str:
        return f"<AddressOrder {self._failed!r}>"

    def order(self, origin: Origin, addresses: Sequence[str], now: float) -> list[str]:
        """Return the addresses to try, the first one first: at most `MAX_TRIED`."""
        if len(addresses) == 1:
            return list(addresses)
        self._failed.expire(now)
        sound, failed = [], []
        for address in addresses:
            failed_until = self._failed.get((origin, address))
            if failed_until is None:
                sound.append((self._random(), address))
            else:
                failed.append((failed_until, address))
        return [*_take_turns(address for _, address in sorted(sound)), *(each for _, each in sorted(failed))][
            :MAX_TRIED
        ]

    def note_failed(self, origin: Origin, addresses: Iterable[str], now: float) -> None:
        """Remember that these did not serve. Call it only where the origin has other addresses."""
        for address in addresses:
            self.failure_count += 1
            self._failed.add((origin, address), now)

    def note_chosen(self, origin: Origin, tried: Sequence[str], chosen: str, now: float) -> None:
        """Remember that the addresses tried before `chosen`, which connected first, failed.

        They may only have been slower, by the time that they were ahead.
        """
        self.note_failed(origin, takewhile(lambda address: address != chosen, tried), now)


def _take_turns(addresses: Iterable[str]) -> list[str]:
    by_family: dict[bool, list[str]] = {True: [], False: []}
    for address in addresses:
        by_family[":" in address].append(address)
    return [each for each in chain.from_iterable(zip_longest(by_family[True], by_family[False])) if each is not None]
