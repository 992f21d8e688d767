"""A configuration of the connect modal, resolved into records for the domain that a person chose.

Rules
    ``{SUBDOMAIN}`` is what the person entered, else ``defaultSubdomain``, else ``www`` where ``hostRequired`` is true,
        else nothing: a host that is nothing else is the apex
    ``{SERVICE_SERVERS}`` in an A record is two of our IPv4 addresses, in an AAAA record two of our IPv6 addresses
    ``wwwRedirect`` and ``secureRootDomain`` add the A record of the root that they need, unless the records have one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from api.rules.record_rules import check_record, check_size
from common.connect.configuration import (
    PLACEHOLDER,
    SERVICE_SERVERS,
    Configuration,
    InvalidConfiguration,
    RecordTemplate,
)
from common.domain_settings import DomainSettings
from common.errors import FrontageError, InvalidName
from common.flows.requested import RecordPurpose, Requested
from common.names import DomainName, parse_domain, parse_subdomain
from common.records import (
    APEX,
    InvalidRecord,
    Record,
    parse_record,
)
from common.urls import parse_redirect_target

MOST_ROOT_ADDRESSES = 2
CNAME_TARGET: Final = "{CNAME_TARGET}"


_DEFAULT_SUBDOMAIN = "www"


_ROOT_TTL = 300


@dataclass(frozen=True, slots=True)
class PlaceholderValues:
    """The values of placeholders, beside the domain; addresses as `ipaddress` writes them."""

    cname_target: str
    secure_cname_target: str
    service_servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChosenDomain:
    """The domain that a person chose: `domain` is the apex, `subdomain` the labels before it."""

    domain: str
    subdomain: str | None

    @property
    def host(self) -> str:
        """Return the whole name."""
        return f"{self.subdomain}.{self.domain}" if self.subdomain else self.domain


def choose_domain(configuration: Configuration, text: str, subdomain: str | None) -> ChosenDomain:
    """Combine the domain a person entered, a subdomain within or beside it, and the configuration's defaults.

    Raises: `InvalidConfiguration`.
    """
    name = _domain_name(text)
    labels = name.subdomain
    if subdomain is not None and subdomain.strip() not in ("", APEX):
        if labels is not None:
            raise InvalidConfiguration("subdomain", f"none, as the domain already names one: {labels}")
        labels = _labels(subdomain.strip(), name.registrable)
    if labels is None and configuration.default_subdomain is not None:
        labels = _labels(configuration.default_subdomain, name.registrable)
    if labels is None and configuration.host_required:
        labels = _DEFAULT_SUBDOMAIN
    if labels is None and configuration.force_subdomain:
        raise InvalidConfiguration(
            "subdomain",
            "a subdomain, such as www: this configuration does not connect the root",
            code="subdomain_required",
        )
    if labels is not None and not configuration.support_for_subdomains:
        raise InvalidConfiguration(
            "domain",
            f"a root domain, here {name.registrable}: this configuration connects no subdomains",
            code="subdomain_not_supported",
        )
    return ChosenDomain(name.registrable, labels)


def _domain_name(text: str) -> DomainName:
    try:
        return parse_domain(text.strip())
    except InvalidName as error:
        raise InvalidConfiguration("domain", f"a domain name: {error}") from error


def _labels(text: str, domain: str) -> str:
    try:
        return parse_subdomain(text, domain)
    except InvalidName as error:
        raise InvalidConfiguration("subdomain", f"the labels before {domain}: {error}") from error


def resolve(
    configuration: Configuration, chosen: ChosenDomain, placeholders: PlaceholderValues
) -> tuple[Requested, ...]:
    """Return the records for the chosen domain, without placeholders.

    `common.connect.root` fits those at the root.

    Raises: `InvalidConfiguration`.
    """
    templates = configuration.of_subdomain if chosen.subdomain else configuration.of_domain
    if not templates:
        at = "below a domain" if chosen.subdomain else "at the root"
        raise InvalidConfiguration(
            "domain", f"another domain: this configuration has no records {at}", code="no_records"
        )
    requested: list[Requested] = []
    for number, template in enumerate([*templates, *_root_templates(configuration, templates, chosen)]):
        requested += _resolve_one(configuration, f"dnsRecords[{number}]", template, chosen, placeholders)
    try:
        check_size([each.record for each in requested])
    except InvalidRecord as error:
        raise InvalidConfiguration("dnsRecords", str(error)) from error
    return tuple(requested)


def resolve_without_domain(configuration: Configuration, placeholders: PlaceholderValues) -> list[dict[str, Any]]:
    """Return the records before a domain is chosen, in the API's form.

    Placeholders for parts of the domain stay.
    """
    found: list[dict[str, Any]] = []
    for template in configuration.of_subdomain or configuration.of_domain:
        target = _cname_target(template, placeholders) or CNAME_TARGET
        fields = {"type": template.type, "host": template.host.replace(CNAME_TARGET, target), "ttl": template.ttl}
        priority = {} if template.priority is None else {"priority": template.priority}
        values = _addresses(template, placeholders) or [template.value.replace(CNAME_TARGET, target)]
        found += [fields | {"value": value} | priority for value in values]
    return found


def _cname_target(template: RecordTemplate, placeholders: PlaceholderValues) -> str:
    return placeholders.secure_cname_target if template.ssl else placeholders.cname_target


def _root_templates(
    configuration: Configuration, templates: Sequence[RecordTemplate], chosen: ChosenDomain
) -> list[RecordTemplate]:
    wanted = configuration.www_redirect or configuration.secure_root_domain
    if (
        not wanted
        or chosen.subdomain is None
        or any(template.host == APEX and template.type == "A" for template in templates)
    ):
        return []
    url = next((template.application_url for template in templates if template.application_url), None)
    redirect_to = chosen.host if configuration.www_redirect else None
    root = RecordTemplate("A", APEX, SERVICE_SERVERS, _ROOT_TTL, ssl=True, redirect_to=redirect_to)
    return [root if redirect_to or not configuration.power else replace(root, ssl=False, application_url=url)]


def _resolve_one(
    configuration: Configuration,
    key: str,
    template: RecordTemplate,
    chosen: ChosenDomain,
    placeholders: PlaceholderValues,
) -> list[Requested]:
    target = _cname_target(template, placeholders)
    if CNAME_TARGET in template.value + template.host and not target:
        raise InvalidConfiguration(
            f"{key}.value", "an application with a cname target: set one first", code="no_cname_target"
        )
    host = _without_empty_labels(_fill(template.host, chosen, target)) or APEX
    values = _addresses(template, placeholders) or [
        _without_empty_labels_if_name(template, _fill(template.value, chosen, target))
    ]
    if not values:
        raise InvalidConfiguration(
            f"{key}.value", f"a record that needs no address of ours: this installation has none for {template.type}"
        )
    purpose = _purpose(configuration, key, template, chosen, target)
    return [Requested(_record(key, template, host, value, chosen.domain), purpose) for value in values]


def _addresses(template: RecordTemplate, placeholders: PlaceholderValues) -> list[str]:
    if template.value != SERVICE_SERVERS:
        return []
    is_v6 = template.type == "AAAA"
    return [each for each in placeholders.service_servers if (":" in each) is is_v6][:MOST_ROOT_ADDRESSES]


def _fill(text: str, chosen: ChosenDomain, target: str) -> str:
    sld, _, tld = chosen.domain.partition(".")
    values = {"CNAME_TARGET": target, "SUBDOMAIN": chosen.subdomain or "", "SLD": sld, "TLD": tld}
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _without_empty_labels(text: str) -> str:
    """Remove the dot that an empty subdomain leaves behind; a final dot stays."""
    end = "." if text.endswith(".") else ""
    labels = ".".join(filter(None, text.split(".")))
    return f"{labels}{end}" if labels else ""


def _without_empty_labels_if_name(template: RecordTemplate, value: str) -> str:
    return _without_empty_labels(value) if template.type in ("CNAME", "NS", "MX", "PTR") else value


def _record(key: str, template: RecordTemplate, host: str, value: str, domain: str) -> Record:
    fields = {"type": template.type, "host": host, "value": value, "ttl": template.ttl, "priority": template.priority}
    try:
        record = parse_record(fields)
        check_record(record, domain)
    except InvalidRecord as error:
        raise InvalidConfiguration(key, f"a record that {domain} can hold: {error}") from error
    return record


def _purpose(
    configuration: Configuration, key: str, template: RecordTemplate, chosen: ChosenDomain, target: str
) -> RecordPurpose:
    redirect_to = _fill(template.redirect_to, chosen, target) if template.redirect_to else None
    if redirect_to is not None:
        try:
            redirect_to = str(parse_redirect_target(redirect_to))
        except FrontageError as error:
            raise InvalidConfiguration(f"{key}.redirectTo", f"a host or a URL: {error}") from error
    is_powered = configuration.power and not template.ssl and template.application_url is not None
    return RecordPurpose(
        product="secure" if template.ssl else "power" if is_powered else None,
        settings=DomainSettings(template.application_url, template.root_path_access, redirect_to),
        is_monitored=configuration.monitor if template.monitor is None else template.monitor,
    )
