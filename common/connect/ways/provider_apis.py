"""The provider APIs that a person may paste a token for: one table.

Providers whose module in dns-lexicon takes every CNAME's target for a name in the zone are left out (seen in 3.25 of
deSEC, UltraDNS and Mythic Beasts). `id` is the provider's name there, and
`common.domain_check.providers.Provider.api`. A token is made on `token_url`, with `least_right` and no more. With
`is_own_server`, the key stands in the configuration of the person's own server, which `token_url` documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from common.flows.ways import CredentialField


@dataclass(frozen=True, slots=True)
class ProviderApi:
    """A provider's API that a plan can be written through."""

    id: str
    name: str
    token_url: str
    least_right: str
    fields: tuple[CredentialField, ...] = (CredentialField("auth_token", "API token"),)
    endpoint_field: str | None = None
    """The field with an address that the person chooses: it must pass the address policy."""
    is_own_server: bool = False
    has_priority_in_value: bool = False
    has_final_dot: bool = False
    """Names in values end with a dot; without it, the provider appends the zone's name."""


_APIS: Final = (
    ProviderApi(
        "cloudflare",
        "Cloudflare",
        "https://dash.cloudflare.com/profile/api-tokens",
        "Template “Edit zone DNS”: Zone, DNS, Edit and Zone, Zone, Read, for this zone only.",
    ),
    ProviderApi(
        "godaddy",
        "GoDaddy",
        "https://developer.godaddy.com/keys",
        "A production key. GoDaddy's keys reach the whole account: delete it afterwards.",
        (CredentialField("auth_key", "Key", is_secret=False), CredentialField("auth_secret", "Secret")),
    ),
    ProviderApi(
        "route53",
        "Amazon Route 53",
        "https://console.aws.amazon.com/iam/home#/users",
        "A user with route53:ListHostedZonesByName on all, and route53:ListResourceRecordSets and"
        " route53:ChangeResourceRecordSets on this hosted zone.",
        (
            CredentialField("auth_access_key", "Access key id", is_secret=False),
            CredentialField("auth_access_secret", "Secret access key"),
        ),
        has_final_dot=True,
    ),
    ProviderApi(
        "digitalocean",
        "DigitalOcean",
        "https://cloud.digitalocean.com/account/api/tokens/new",
        "Custom scopes: domain, read, create, update and delete; the shortest expiry.",
        has_final_dot=True,
    ),
    ProviderApi(
        "hetzner",
        "Hetzner",
        "https://dns.hetzner.com/settings/api-token",
        "A token of its own for this change: delete it afterwards.",
        has_final_dot=True,
    ),
    ProviderApi(
        "ovh",
        "OVHcloud",
        "https://api.ovh.com/createToken/",
        "GET, POST, PUT and DELETE on /domain/zone/<this domain>/*, and GET on /domain/zone/; validity one hour.",
        (
            CredentialField("auth_entrypoint", "Entry point, such as ovh-eu", is_secret=False),
            CredentialField("auth_application_key", "Application key"),
            CredentialField("auth_application_secret", "Application secret"),
            CredentialField("auth_consumer_key", "Consumer key"),
        ),
        has_final_dot=True,
    ),
    ProviderApi(
        "gandi",
        "Gandi",
        "https://admin.gandi.net/organizations/account/pat",
        "A personal access token for this domain alone: “Manage domain name technical configurations”.",
        has_final_dot=True,
    ),
    ProviderApi(
        "ionos",
        "IONOS",
        "https://developer.hosting.ionos.com/keys",
        "A key of its own for this change: delete it afterwards.",
        (CredentialField("api_key", "Prefix and secret, as prefix.secret"),),
    ),
    ProviderApi(
        "linode4",
        "Akamai (Linode)",
        "https://cloud.linode.com/profile/tokens",
        "Domains: read and write, nothing else; the shortest expiry.",
    ),
    ProviderApi(
        "vultr",
        "Vultr",
        "https://my.vultr.com/settings/#settingsapi",
        "A sub-user with “Manage DNS” alone; this service's address allowed.",
    ),
    ProviderApi(
        "dnsimple",
        "DNSimple",
        "https://dnsimple.com/user",
        "An account token for this domain alone.",
    ),
    ProviderApi(
        "porkbun",
        "Porkbun",
        "https://porkbun.com/account/api",
        "API access switched on for this domain alone.",
        (CredentialField("auth_key", "API key", is_secret=False), CredentialField("auth_secret", "Secret API key")),
    ),
    ProviderApi(
        "vercel",
        "Vercel",
        "https://vercel.com/account/tokens",
        "Scope: the team of the domain; the shortest expiry.",
    ),
    ProviderApi(
        "powerdns",
        "PowerDNS",
        "https://doc.powerdns.com/authoritative/http-api/",
        "The api-key of the server's configuration, which reaches every zone of the server.",
        (
            CredentialField("pdns_server", "URL of the API, such as https://ns1.example.com:8081", is_secret=False),
            CredentialField("auth_token", "API key"),
            CredentialField("pdns_server_id", "Server id, if it is not localhost", is_secret=False, is_required=False),
        ),
        endpoint_field="pdns_server",
        is_own_server=True,
        has_priority_in_value=True,
        has_final_dot=True,
    ),
)

PROVIDER_APIS: Mapping[str, ProviderApi] = MappingProxyType({api.id: api for api in _APIS})


def find_api(name: str | None) -> ProviderApi | None:
    """Return the provider API of that name; None where there is none, or dns-lexicon is not installed to speak it."""
    return PROVIDER_APIS.get(name) if name is not None and _is_lexicon_installed() else None


@cache
def _is_lexicon_installed() -> bool:
    return find_spec("lexicon") is not None
