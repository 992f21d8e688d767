"""The domain that a person chooses for a flow, and the configuration resolved for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from api.access import Access
from api.connect.resolution import ChosenDomain, choose_domain, resolve
from api.errors import FORBIDDEN, Refused, invalid_parameter
from api.services.placeholder_values import placeholder_values_of
from common.connect.configuration import Configuration, InvalidConfiguration
from common.db.connect_flows import Changes
from common.errors import InvalidName
from common.names import parse_domain
from common.settings import Settings


def changes_of_domain(
    settings: Settings,
    access: Access,
    configuration: Configuration,
    text: str,
    subdomain: str | None,
    share_id: str | None,
    now: datetime,
) -> Changes:
    """Return what a chosen domain changes in a flow. Raises: `Refused`."""
    chosen: ChosenDomain = understood(choose_domain, configuration, text, subdomain)
    access.refuse_other_domain(chosen.domain)
    if access.is_browsers and share_id is not None:
        _refuse_other_than_shared(configuration, chosen)
    requested = understood(resolve, configuration, chosen, placeholder_values_of(access.application, settings))
    return {
        "domain": chosen.domain,
        "subdomain": chosen.subdomain,
        "requested": requested,
        "handover": None,
        "looked": None,
        "plan": None,
        "statuses": [],
        "error": None,
        "due_at": now,
    }


def understood(parse: Callable[..., Any], *given: Any) -> Any:
    """Parse a configuration. Raises: `Refused`, naming the key and what was expected."""
    try:
        return parse(*given)
    except InvalidConfiguration as error:
        raise Refused(invalid_parameter(error.key), code=error.code, hint=f"expected {error}") from error


def _refuse_other_than_shared(configuration: Configuration, chosen: ChosenDomain) -> None:
    """Refuse another domain than that of the sharing link. Raises: `Refused`."""
    shared = configuration.prefilled_domains
    if shared and not any(_is_in(each, chosen.domain) for each in shared):
        raise Refused(
            FORBIDDEN, code="domain", hint="the sharing link is for another domain: connect the one that it names"
        )


def _is_in(name: str, apex: str) -> bool:
    try:
        return parse_domain(name).registrable == apex
    except InvalidName:
        return False
