"""Offers: the ways that are open to a zone, with what a person needs for each.

Rules
    what asks least of the person stands first; the manual way is always open
    of a provider that is not known, the ways for people who run their own name servers stand after the manual one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from common.connect.domain_connect.discovery import Closed
from common.connect.domain_connect.offer import Offer
from common.connect.ways.provider_apis import ProviderApi, find_api
from common.domain_check.providers import Provider
from common.domain_check.zone_view import ZoneView, relative_host
from common.flows.inspection import DomainConnectState, SetupType
from common.flows.requested import Requested
from common.flows.ways import (
    CredentialField,
    DomainConnectWay,
    DynamicUpdateWay,
    FieldNames,
    FormRecord,
    HostStyle,
    ManualWay,
    ProviderApiWay,
    Way,
)
from common.records import APEX


@dataclass(frozen=True, slots=True)
class Offers:
    """The ways that are open to a zone.

    `domain_connect`: with what it is open, or why it is not; None where the provider does not have it.
    """

    ways: tuple[Way, ...]
    domain_connect: Offer | Closed | None = None

    @property
    def setup_type(self) -> SetupType:
        """Whether the best way writes the records by itself."""
        return "automatic" if self.ways and self.ways[0].way != "manual" else "manual"

    @property
    def provider_name(self) -> str | None:
        """The provider's name, as its Domain Connect service states it."""
        match self.domain_connect:
            case Offer(settings):
                return settings.name
            case Closed(provider=name):
                return name
            case None:
                return None

    @property
    def domain_connect_state(self) -> DomainConnectState | None:
        """The state of Domain Connect at the provider, for people who look into why the way is not offered."""
        match self.domain_connect:
            case Offer():
                return DomainConnectState(is_open=True)
            case Closed(code, words):
                return DomainConnectState(is_open=False, code=code, message=words)
            case None:
                return None


_SERVER_FIELDS = (
    CredentialField("key_name", "Name of the TSIG key", is_secret=False),
    CredentialField("key_secret", "Secret of the key (base64)"),
    CredentialField("key_algorithm", "Algorithm, if it is not hmac-sha256", is_secret=False, is_required=False),
    CredentialField(
        "server",
        "Primary server, if it is not the zone's own (host or host:port)",
        is_secret=False,
        is_required=False,
    ),
)


def find_offers(
    provider: Provider, view: ZoneView, requested: Sequence[Requested], domain_connect: Offer | Closed | None
) -> Offers:
    """Find the ways that are open to a zone, the one that asks least of the person first."""
    ways: list[Way] = []
    if isinstance(domain_connect, Offer):
        ways.append(_domain_connect(domain_connect))
    api = find_api(provider.api)
    if api is not None:
        ways.append(_api(api))
    ways.append(manual(provider, view, requested))
    if api is None:
        ways.append(DynamicUpdateWay(_SERVER_FIELDS))
        own_server = find_api("powerdns")
        if own_server is not None:
            ways.append(replace(_api(own_server), is_expert=True))
    return Offers(tuple(ways), domain_connect)


def _domain_connect(offer: Offer) -> DomainConnectWay:
    settings = offer.settings
    return DomainConnectWay(
        settings.name, offer.filled.service, settings.width, settings.height, settings.control_panel_url
    )


def _api(api: ProviderApi) -> ProviderApiWay:
    return ProviderApiWay(api.id, api.name, api.token_url, api.least_right, api.is_own_server, api.fields)


# By hand ------------------------------------------------------------------------------------------------------------

WORDS: Mapping[str, tuple[str, str, HostStyle]] = {
    # by the provider's id: what its form calls a record's host and value, and what it wants as host
    "cloudflare": ("Name", "Content", "relative"),
    "godaddy": ("Name", "Value", "relative"),
    "namecheap": ("Host", "Value", "relative"),
    "route53": ("Record name", "Value", "blank"),
    "google-cloud-dns": ("DNS name", "Data", "blank"),
    "azure-dns": ("Name", "Value", "relative"),
    "digitalocean": ("Hostname", "Value", "relative"),
    "ionos": ("Host name", "Points to", "relative"),
    "ovh": ("Sub-domain", "Target", "blank"),
    "hetzner": ("Name", "Value", "relative"),
    "gandi": ("Name", "Value", "relative"),
    "squarespace": ("Host", "Data", "relative"),
    "wix": ("Host name", "Value", "blank"),
    "porkbun": ("Host", "Answer", "blank"),
    "hostinger": ("Name", "Points to", "relative"),
    # cPanel's zone editor: hostgator.com/help/article/i-bought-my-domain-from-hostgator-how-do-i-make-dns-changes
    "hostgator": ("Name", "Record", "whole"),
    "strato": ("Subdomain", "Value", "blank"),
    "name-com": ("Host", "Answer", "blank"),
    "dynadot": ("Subdomain", "Value", "blank"),
    "vercel": ("Name", "Value", "blank"),
}


def manual(provider: Provider, view: ZoneView, requested: Sequence[Requested]) -> ManualWay:
    """Return the way in which a person types the records into the provider's form."""
    host_word, value_word, style = WORDS.get(provider.id, ("Host", "Value", "relative"))
    return ManualWay(
        FieldNames("Type", host_word, value_word, "TTL", "Priority"),
        style,
        tuple(FormRecord(_host(each, view.apex, style), _value(each)) for each in requested),
        provider.help_url,
    )


def _host(each: Requested, apex: str, style: HostStyle) -> str:
    if style == "whole":
        return each.name(apex)
    host = relative_host(each.name(apex), apex)
    return "" if host == APEX and style == "blank" else host


def _value(each: Requested) -> str:
    value = each.record.value.strip()
    return value.removesuffix(".") if each.record.type in ("CNAME", "NS", "MX", "PTR", "SRV") else value
