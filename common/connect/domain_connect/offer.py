"""Whether Domain Connect is open to a flow, and with which template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.connect.domain_connect.agreement import find_disagreement
from common.connect.domain_connect.discovery import Closed, Discovered
from common.connect.domain_connect.provider_settings import ProviderSettings
from common.connect.domain_connect.templates import Filled, fill_templates
from common.connect.rights import Vouches
from common.domain_check.zone_view import ZoneView
from common.flows.plan import Plan
from common.flows.requested import Requested


@dataclass(frozen=True, slots=True)
class Offer:
    """An open way through Domain Connect: what the apply URL is made of."""

    settings: ProviderSettings
    filled: Filled


def hosts(settings: ProviderSettings, name_servers: Sequence[str]) -> bool:
    """Return whether the provider can be the one of a zone with these name servers.

    It is decided as far as the provider states its own.
    """
    return not settings.name_servers or not name_servers or bool({*settings.name_servers} & {*name_servers})


def decide_offer(
    discovered: Discovered | Closed | None,
    requested: Sequence[Requested],
    plan: Plan,
    view: ZoneView,
    vouches: Vouches,
) -> Offer | Closed | None:
    """Decide whether Domain Connect is open to a flow, and with which template.

    `requested`: as they are once the plan is written. None: the provider has no Domain Connect.
    """
    if not isinstance(discovered, Discovered):
        return discovered
    settings, name = discovered.settings, discovered.settings.name
    if not hosts(settings, view.server_names):
        return Closed("other_name_servers", f"{name} does not host the domain's name servers.", name)
    expressing = fill_templates(requested, view.apex)
    if not expressing:
        return Closed("not_expressible", "Domain Connect has no template for these records.", name)
    if not all(map(vouches, requested)):
        return Closed("not_vouched", "These records are not of a configuration that this service vouches for.", name)
    supported = [filled for filled in expressing if filled.service in discovered.services]
    if not supported:
        return Closed("template_not_supported", f"{name} does not support the template of this service.", name)
    disagreements = [find_disagreement(filled, plan, view) for filled in supported]
    for filled, disagreement in zip(supported, disagreements, strict=True):
        if disagreement is None:
            return Offer(settings, filled)
    return Closed("plan_not_expressible", disagreements[0] or "", name)
