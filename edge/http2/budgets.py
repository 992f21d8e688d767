"""What one connection may cost beyond its requests, counted over its life: every budget of HTTP/2, by attack.

Each allows a number for a start, and more for each response that was sent whole. A connection that exceeds one gets
GOAWAY with ENHANCE_YOUR_CALM; its client counts and is logged by the budget's name.

    early_ends      streams that ended before their response did, whoever reset them:
                    Rapid Reset CVE-2023-44487, MadeYouReset CVE-2025-8671
    continuations   CONTINUATION frames of one block: CONTINUATION flood CVE-2024-27983, CVE-2024-27316
    header_bytes    octets of one block, and of what it decodes to: the same, and the HPACK bomb
    header_fields   fields of one block (`edge.http2.hpack`): HPACK bomb CVE-2016-6581, CVE-2016-1544; and headers of no
                    length CVE-2019-9516
    pings           PING frames: CVE-2019-9512
    settings        SETTINGS frames: CVE-2019-9515
    empty_data      DATA frames without content: CVE-2019-9518
    window_updates  WINDOW_UPDATE frames, beyond those that what was sent earns: data dribble CVE-2019-9511
    priorities      PRIORITY and PRIORITY_UPDATE frames: resource loop CVE-2019-9513
    ignored_frames  frames of unknown types, and on streams that are closed: the same
    slow_heads      frames and header blocks whose end does not come in the time of a head; the owner of the connection
                    watches that
    unread_answers  octets of our answers to frames that the client does not read: CVE-2019-9514, CVE-2019-9517

Windows of zero (CVE-2019-9517 too) hold memory no longer than a body's deadline, and no more than
`edge.http2.output.MAX_HELD_BYTES` and what each stream's origin had sent at once when that was reached. Heads that do
not come to their end have the deadline of heads (the owner's).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from edge.http2.errors import ConnectionFailed, ErrorCode


class Allowance(NamedTuple):
    """How much is allowed at first, and how much more for each whole response."""

    name: str
    base: int
    each: float


EARLY_ENDS: Final = 0
PINGS: Final = 1
SETTINGS_FRAMES: Final = 2
EMPTY_DATA: Final = 3
WINDOW_UPDATES: Final = 4
PRIORITIES: Final = 5
IGNORED_FRAMES: Final = 6

ALLOWANCES: Final = (
    Allowance("early_ends", 100, 0.5),  # a page that is left cancels what it still loads: that is at most a page's
    Allowance("pings", 500, 4),
    Allowance("settings", 100, 1),
    Allowance("empty_data", 500, 4),
    Allowance("window_updates", 1_000, 8),  # and `earned_updates`
    Allowance("priorities", 500, 8),
    Allowance("ignored_frames", 500, 1),
)
MAX_CONTINUATIONS: Final = 8  # of a block: one of 128 KB is a HEADERS frame and seven of these
MAX_UNREAD_ANSWER_BYTES: Final = 65_536
_BYTES_AN_UPDATE: Final = 1_024
NAMES: Final = (
    *(allowance.name for allowance in ALLOWANCES),
    "continuations",
    "header_fields",
    "header_bytes",
    "unread_answers",
    "slow_heads",
)


def earned_updates(sent_pieces: int, sent_bytes: int) -> int:
    """Return how many WINDOW_UPDATE frames the content that was sent allows.

    Mint opens both windows for each DATA frame; Go's net/http for each 4 KB that are read, if its reader's buffer is
    small. A frame that the client's own window cuts short earns by its octets only.
    """
    return 2 * sent_pieces + sent_bytes // _BYTES_AN_UPDATE


class Budgets:
    """Counts what one connection has used of its budgets."""

    __slots__ = ("_counts", "served")

    def __init__(self) -> None:
        self.served = 0  # responses that were sent whole
        self._counts = [0] * len(ALLOWANCES)

    def spend(self, budget: int, earned: int = 0) -> None:
        """Count one. `earned`: so many more are allowed.

        Raises: `ConnectionFailed` where it is one too many.
        """
        counts = self._counts
        counts[budget] += 1
        allowance = ALLOWANCES[budget]
        if counts[budget] > allowance.base + allowance.each * self.served + earned:
            raise exceeded(allowance.name)


def exceeded(name: str) -> ConnectionFailed:
    """Return the end of a connection that exceeds a budget."""
    return ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, f"too much: {name}", name)
