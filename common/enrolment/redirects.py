"""The question whether a redirect would close a loop over enrolled domains (`common.enrolment.redirect_loops`)."""

from __future__ import annotations

from common.db import domains
from common.db.session import Connection
from common.enrolment.redirect_loops import RedirectChain
from common.names import wildcard_above
from common.urls import parse_redirect_target


async def closes_loop(connection: Connection, domain: str, redirect_to: str) -> bool:
    """Return whether a redirect of `domain` would lead back to it, over the redirects of enrolled domains.

    It stays so under `domains.lock_redirects`.
    """
    chain = RedirectChain(domain)
    following: str | None = redirect_to
    while following is not None:
        host = parse_redirect_target(following).host
        if chain.loops_at(host):
            return True
        if wildcard_above(host) == domain and not await domains.find(connection, host):
            return True
        following = await domains.redirect_of(connection, host)
    return False
