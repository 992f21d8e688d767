"""The rule against loops of redirects (`redirectTo`) between enrolled domains.

The API refuses a redirect that would close a loop. Two changes together, or the end of Power on a name, may still close
one, so the edge applies the same rule to each request.
"""

from __future__ import annotations

from typing import Final

MOST_HOPS: Final = 10
"""The redirects that one visitor may follow over enrolled domains. Browsers give up after 20."""


class RedirectChain:
    """The hosts that a visitor passes, from an enrolled domain along its redirects. Mutable state: these hosts."""

    __slots__ = ("_hosts",)

    def __init__(self, domain: str) -> None:
        self._hosts = {domain}

    def __repr__(self) -> str:
        return f"<RedirectChain over {len(self._hosts)} hosts>"

    def loops_at(self, host: str) -> bool:
        """Add the host that the next redirect leads to. Return True when the chain was there before, or is too long."""
        if host in self._hosts or len(self._hosts) > MOST_HOPS:
            return True
        self._hosts.add(host)
        return False
