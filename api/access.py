"""What a verified token or API key opens: an application, and within which bounds."""

from __future__ import annotations

from dataclasses import dataclass

from api.errors import FORBIDDEN, Refused
from common.db.applications import Application


@dataclass(frozen=True, slots=True)
class Access:
    """What a verified token opens.

    `scope` is the claim, None for everything. Of a token with a scope, as claimed: `domain`, the only one that it
    is for; `configuration_id`, the registered configuration of its flows; `share_id`, the sharing link that it was
    made by, whose flows alone it opens. `user_id`: the partner's customer that it was given to.
    `by_current_secret`: false for one that the previous client secret signed; `secret_generation`: the number of
    the one that signed it, None for an API key.
    """

    application: Application
    scope: str | None = None
    domain: str | None = None
    user_id: str | None = None
    by_current_secret: bool = True
    configuration_id: str | None = None
    share_id: str | None = None
    secret_generation: int | None = None
    by_key: str | None = None

    @property
    def bounds(self) -> tuple[str | None, ...]:
        """Return what the token is restricted to: tokens of other bounds share nothing."""
        return (self.scope, self.domain, self.user_id, self.configuration_id, self.share_id)

    @property
    def is_browsers(self) -> bool:
        """Return whether a browser may hold it, so that what it sends is the browser's word."""
        return self.scope is not None

    def refuse_browsers(self) -> None:
        """Refuse a token with a scope where its route is open to a scope, but not by this method. Raises: `Refused`."""
        if self.is_browsers:
            raise Refused(FORBIDDEN, code="scope", hint="the scope of this token does not open this endpoint")

    def refuse_other_domain(self, apex: str) -> None:
        """Refuse another domain than the token is for; `apex` is in canonical form. Raises: `Refused`."""
        if self.domain is not None and self.domain.lower().removesuffix(".") != apex:
            raise Refused(FORBIDDEN, code="domain", hint="the token is for another domain")
