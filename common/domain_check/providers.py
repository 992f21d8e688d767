"""Providers: which company hosts a zone, and what can be set up there.

The table is ``providers.json``: one object a provider, with the source of each claim; ``sources`` there has the pages
that many of them share. A zone's provider is found by the names of its name servers; with name servers under the
customer's own name (vanity servers), by its SOA record.

Rules
    a pattern is the end of a name server's name, in whole labels; ``*`` stands for letters, digits and hyphens
    the longest pattern that fits a name server wins; the zone's provider is the one of most of its name servers
    an unknown provider is named after its name servers' registrable domain
    what is not known of a provider takes the value of `CAREFUL`: the one that promises nothing
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from common.errors import InvalidName
from common.names import parse_domain

SocialLogin = Literal["yes", "no", "n/a"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be set up at a provider.

    `ns_at_root`, `ns_at_subdomains`: NS records there. `cname_flattening`: addresses of another name at the root, by a
    record of whatever type; `root_cname`: by one of type CNAME. `most_root_addresses`: of each family.
    `spf_override`: an SPF record can be replaced as a whole. `subdomain_cname_ns_override`: a CNAME goes by itself when
    an NS record of its name is added. `social_login`: ``n/a`` where the provider has none, ``no`` where this service
    does not support it.
    """

    ns_at_root: bool = False
    ns_at_subdomains: bool = False
    www_redirect: bool = False
    cname_flattening: bool = False
    root_cname: bool = False
    most_root_addresses: int = 2
    wildcards: bool = False
    subdomain_cname_ns_override: bool = False
    spf_override: bool = False
    caa: bool = False
    social_login: SocialLogin = "no"


CAREFUL = Capabilities()


@dataclass(frozen=True, slots=True)
class Provider:
    """A company that hosts zones, and what can be set up there.

    `id` is stable and empty for an unknown provider. `domain_connect_id`: its providerId in Domain Connect. `api`:
    the name of its API in dns-lexicon. `sources`: the page that a claim comes from, by the claim's field; a
    capability without a source is a careful default.
    """

    id: str
    name: str
    capabilities: Capabilities = CAREFUL
    domain_connect_id: str | None = None
    api: str | None = None
    help_url: str | None = None
    console_url: str | None = None
    """Where the zone is edited after signing in; ``{domain}`` in it stands for the domain."""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether the table has this provider."""
        return bool(self.id)


UNKNOWN = Provider("", "Unknown")


def find_provider(name_servers: Sequence[str], soa: str = "") -> Provider:
    """Find the provider of a zone with these name servers.

    `soa` is the zone's SOA in normal form (``mname rname …``); it decides where the name servers' names tell
    nothing. Names are in normal form.
    """
    table = provider_table()
    return table.of_servers(name_servers) or table.of_soa(soa) or _unknown_provider(name_servers)


class ProviderTable:
    """Finds providers by names of servers. Immutable; made of the content of ``providers.json``.

    A look-up reads only the patterns that share the name's last labels.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.providers: list[Provider] = []
        self._patterns: dict[str, list[_Pattern]] = {}
        for row in content["providers"]:
            provider = _parse_provider(row, content["sources"])
            self.providers.append(provider)
            for text in row["name_servers"]:
                pattern = _Pattern(text, provider)
                self._patterns.setdefault(pattern.key, []).append(pattern)

    def of_servers(self, names: Iterable[str]) -> Provider | None:
        """Return the provider of most of the name servers; among equals, of the one that is named first."""
        found = [provider for provider in map(self.of_server, names) if provider is not None]
        counts = Counter(provider.id for provider in found)
        return max(found, key=lambda provider: counts[provider.id], default=None)

    def of_soa(self, soa: str) -> Provider | None:
        """Return the provider of a zone's primary server and mailbox.

        With vanity name servers, these are often still the provider's.
        """
        return self.of_servers(soa.split()[:2])

    def of_server(self, name: str) -> Provider | None:
        """Return the provider of one name server, by the longest pattern that fits."""
        keys = (_last_labels(name, 2), _last_labels(name, 1))
        fitting = [pattern for key in keys for pattern in self._patterns.get(key, ()) if pattern.fits(name)]
        return max(fitting, key=lambda pattern: pattern.length).provider if fitting else None


class _Pattern:
    """A pattern for names of name servers.

    ``key``: its last two labels, or only the last one if there is a ``*`` in them.
    """

    def __init__(self, text: str, provider: Provider) -> None:
        self.provider = provider
        self.key = _last_labels(text, 1 if "*" in _last_labels(text, 2) else 2)
        self.length = len(text)
        self._expression = re.compile(rf"(?:.+\.)?{re.escape(text)}".replace(r"\*", "[a-z0-9-]*"))

    def fits(self, name: str) -> bool:
        """Return whether the whole name fits the pattern."""
        return self._expression.fullmatch(name) is not None


def _last_labels(name: str, labels: int) -> str:
    return ".".join(name.split(".")[-labels:])


def _parse_provider(row: Mapping[str, Any], pages: Mapping[str, str]) -> Provider:
    """Read a row of the table; `pages` are URLs by the short names that sources have in the file."""
    claims: Mapping[str, Mapping[str, Any]] = row["capabilities"]
    sources = {name: claim["source"] for name, claim in claims.items()} | row["sources"]
    return Provider(
        row["id"],
        row["name"],
        Capabilities(**{name: claim["value"] for name, claim in claims.items()}),
        row.get("domain_connect_id"),
        row.get("api"),
        row.get("help_url"),
        row.get("console_url"),
        {name: pages.get(source, source) for name, source in sources.items()},
    )


def _unknown_provider(name_servers: Sequence[str]) -> Provider:
    """Name an unknown provider after the registrable domain that most of the name servers are under."""
    names = Counter(filter(None, map(_registrable, name_servers)))
    return Provider("", names.most_common(1)[0][0]) if names else UNKNOWN


def _registrable(name: str) -> str | None:
    try:
        return parse_domain(name).registrable
    except InvalidName:
        return None


@cache
def provider_table() -> ProviderTable:
    """Return the table as packaged; it is read once, at the first look-up."""
    text = resources.files("common.domain_check").joinpath("providers.json").read_text("utf-8")
    return ProviderTable(json.loads(text))
