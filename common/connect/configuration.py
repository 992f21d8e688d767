"""The configuration of the connect modal: read strictly, then resolved for one domain. Pure.

Rules
    unknown keys are ignored, each with a warning; a key with a wrong value is refused, and what was expected is stated
    null is the same as absent; ``token`` and functions are the browser's business and never kept
    placeholders are case-sensitive and stand in `host` and `value` only
    ``{SUBDOMAIN}`` is what the person entered, else ``defaultSubdomain``, else ``www`` where ``hostRequired`` is true,
        else nothing: a host that is nothing else is the apex
    ``{SERVICE_SERVERS}`` in an A record is two of our IPv4 addresses, in an AAAA record two of our IPv6 addresses
    ``dnsRecords`` as an object: ``subDomain`` applies where there is a subdomain, ``domain`` where there is none
    ``wwwRedirect`` and ``secureRootDomain`` add the A record of the root that they need, unless the records have one
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from common.connect.requested import Purpose, Requested
from common.errors import FrontageError, InvalidName
from common.names import DomainName, parse_domain, parse_subdomain
from common.record_rules import check_record, check_size
from common.records import (
    APEX,
    LARGEST_TTL,
    MOST_VALUE_CHARACTERS,
    RECORD_TYPES,
    InvalidRecord,
    Record,
    parse_record,
)
from common.urls import parse_application_url, parse_redirect_target

MOST_RECORDS = 50
"""Of one configuration: each is asked about at every look."""
MOST_ROOT_ADDRESSES = 2
MOST_TEXT_CHARACTERS = 1024
MOST_PATHS = 100

SERVICE_SERVERS: Final = "{SERVICE_SERVERS}"
CNAME_TARGET: Final = "{CNAME_TARGET}"
_PLACEHOLDER = re.compile(r"\{(SERVICE_SERVERS|CNAME_TARGET|SUBDOMAIN|SLD|TLD)\}")
_LOOKS_LIKE_ONE = re.compile(r"\{(service_servers|cname_target|subdomain|sld|tld)\}", re.IGNORECASE)
_DEFAULT_SUBDOMAIN = "www"
_ROOT_TTL = 300
_ROUTED_TYPES: Final = ("A", "AAAA", "CNAME")


class InvalidConfiguration(FrontageError):
    """The value of `key` is not valid; the text states what was expected."""

    def __init__(self, key: str, expected: str, *, code: str | None = None) -> None:
        super().__init__(expected)
        self.key = key
        self.code = code


@dataclass(frozen=True, slots=True)
class RecordTemplate:
    """An entry of ``dnsRecords``, placeholders and all. `monitor` None: the configuration's applies."""

    type: str
    host: str
    value: str
    ttl: int
    priority: str | None = None
    ssl: bool = False
    application_url: str | None = None
    redirect_to: str | None = None
    root_path_access: tuple[str, ...] | None = None
    monitor: bool | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """`stored` is what is kept and shared of what was sent. `of_domain` and `of_subdomain` are the same where
    ``dnsRecords`` is an array."""

    of_domain: tuple[RecordTemplate, ...]
    of_subdomain: tuple[RecordTemplate, ...]
    power: bool = False
    monitor: bool = False
    check_conflicts: bool = False
    host_required: bool = False
    force_manual_setup: bool = False
    force_subdomain: bool = False
    support_for_subdomains: bool = True
    secure_root_domain: bool = False
    www_redirect: bool = False
    default_subdomain: str | None = None
    prefilled_domain: str | None = None
    user_id: str | None = None
    stored: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What placeholders stand for, beside the domain. Addresses as `ipaddress` writes them."""

    cname_target: str
    secure_cname_target: str
    service_servers: tuple[str, ...]


# Reading ---------------------------------------------------------------------------------------------------------


def parse_configuration(given: Mapping[str, Any]) -> Configuration:
    """Raises: `InvalidConfiguration`."""
    known = {key: value for key, value in given.items() if key in _KEYS and value is not None}
    values = {key: _KEYS[key](key, value) for key, value in known.items()}
    of_domain, of_subdomain, warnings = _templates(values.get("dnsRecords"))
    power = values.get("power", False)
    if power and not any(template.application_url for template in (*of_domain, *of_subdomain)):
        raise InvalidConfiguration("power", "a record with an applicationUrl, for the domain to show")
    return Configuration(
        of_domain,
        of_subdomain,
        power=power,
        monitor=values.get("monitor", False),
        check_conflicts=values.get("checkConflicts", False),
        host_required=values.get("hostRequired", False),
        force_manual_setup=values.get("forceManualSetup", False),
        force_subdomain=values.get("forceSubdomain", False),
        support_for_subdomains=values.get("supportForSubdomains", True),
        secure_root_domain=values.get("secureRootDomain", False),
        www_redirect=values.get("wwwRedirect", False),
        default_subdomain=values.get("defaultSubdomain"),
        prefilled_domain=_first(values.get("prefilledDomain")),
        user_id=values.get("userId"),
        stored=MappingProxyType({key: value for key, value in known.items() if key not in _NOT_STORED}),
        warnings=(*_unknown_keys(given, _KEYS, ""), *warnings),
    )


def _unknown_keys(given: Mapping[str, Any], known: Mapping[str, Any], where: str) -> list[str]:
    return [
        f"{where}{_shortened(key)} is not a key of the configuration: it is ignored"
        for key in given
        if key not in known
    ]


def _shortened(key: str) -> str:
    return key if len(key) <= 64 else f"{key[:64]}…"


def _templates(given: Any) -> tuple[tuple[RecordTemplate, ...], tuple[RecordTemplate, ...], list[str]]:
    warnings: list[str] = []
    if isinstance(given, Mapping):
        extra = set(given) - {"domain", "subDomain"}
        if extra or not given:
            raise InvalidConfiguration(
                "dnsRecords", "an array of records, or an object with the arrays domain and subDomain"
            )
        of_domain = _template_list("dnsRecords.domain", given.get("domain") or [], warnings)
        of_subdomain = _template_list("dnsRecords.subDomain", given.get("subDomain") or [], warnings)
        if not of_domain and not of_subdomain:
            raise InvalidConfiguration("dnsRecords", "at least one record")
        return of_domain, of_subdomain, warnings
    if not given:
        raise InvalidConfiguration("dnsRecords", "an array of at least one record")
    templates = _template_list("dnsRecords", given, warnings)
    return templates, templates, warnings


def _template_list(key: str, given: Any, warnings: list[str]) -> tuple[RecordTemplate, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidConfiguration(key, "an array of records")
    if len(given) > MOST_RECORDS:
        raise InvalidConfiguration(key, f"at most {MOST_RECORDS} records")
    return tuple(_template(f"{key}[{number}]", entry, warnings) for number, entry in enumerate(given))


def _template(key: str, given: Any, warnings: list[str]) -> RecordTemplate:
    if not isinstance(given, Mapping):
        raise InvalidConfiguration(key, "an object with type, host, value and ttl")
    warnings.extend(_unknown_keys(given, _RECORD_KEYS, f"{key}."))
    values = {
        name: _RECORD_KEYS[name](f"{key}.{name}", value)
        for name, value in given.items()
        if name in _RECORD_KEYS and value is not None
    }
    for name in ("type", "host", "value", "ttl"):
        if name not in values:
            raise InvalidConfiguration(f"{key}.{name}", "it is missing: a record has type, host, value and ttl")
    _warn_of_case(key, values, warnings)
    kind = values["type"]
    if SERVICE_SERVERS in values["value"] and (kind not in ("A", "AAAA") or values["value"].strip() != SERVICE_SERVERS):
        raise InvalidConfiguration(f"{key}.value", f"{SERVICE_SERVERS} alone, in an A or AAAA record")
    if SERVICE_SERVERS in values["host"]:
        raise InvalidConfiguration(f"{key}.host", "a name: our servers' addresses are none")
    for name in ("ssl", "applicationUrl", "redirectTo", "powerRootPathAccess"):
        if values.get(name) and kind not in _ROUTED_TYPES:
            raise InvalidConfiguration(f"{key}.{name}", "it belongs to an A, AAAA or CNAME record")
    url = values.get("applicationUrl")
    if values.get("ssl") and url is not None and parse_application_url(url).path not in ("", "/"):
        raise InvalidConfiguration(f"{key}.applicationUrl", "no path where ssl is true: requests keep their own")
    if values.get("redirectTo") and not values.get("ssl"):
        raise InvalidConfiguration(f"{key}.redirectTo", "it belongs to a record with ssl: true")
    return RecordTemplate(
        kind,
        values["host"].strip(),
        values["value"].strip(),
        values["ttl"],
        values.get("priority"),
        values.get("ssl", False),
        values.get("applicationUrl"),
        values.get("redirectTo"),
        values.get("powerRootPathAccess"),
        values.get("monitor"),
    )


def _warn_of_case(key: str, values: Mapping[str, Any], warnings: list[str]) -> None:
    for name in ("host", "value"):
        for found in _LOOKS_LIKE_ONE.finditer(values[name]):
            if not _PLACEHOLDER.fullmatch(found[0]):
                warnings.append(f"{key}.{name}: {found[0]} is kept as it is; placeholders are in capitals")


def _boolean(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidConfiguration(key, "true or false")
    return value


def _text(key: str, value: Any, most: int = MOST_TEXT_CHARACTERS) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
        raise InvalidConfiguration(key, f"text of 1 to {most} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidConfiguration(key, "text that can be written in UTF-8")
    return value


def _long_text(key: str, value: Any) -> str:
    return _text(key, value, MOST_VALUE_CHARACTERS)


def _kind(key: str, value: Any) -> str:
    if value not in RECORD_TYPES:
        raise InvalidConfiguration(key, f"one of {', '.join(RECORD_TYPES)}")
    return str(value)


def _ttl(key: str, value: Any) -> int:
    seconds = (
        int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12 else value
    )
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 < seconds <= LARGEST_TTL:
        raise InvalidConfiguration(key, "a whole number of seconds greater than 0")
    return seconds


def _priority(key: str, value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65_535:
        raise InvalidConfiguration(key, "a number from 0 to 65535, as text")
    return text


def _url(key: str, value: Any) -> str:
    try:
        parse_application_url(_text(key, value))
    except InvalidConfiguration:
        raise
    except FrontageError as error:
        raise InvalidConfiguration(key, f"an http or https URL: {error}") from error
    return str(value)


def _redirect(key: str, value: Any) -> str:
    """A host or a URL. It may hold placeholders, so it is read once they are resolved."""
    return _text(key, value)


def _paths(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_PATHS:
        raise InvalidConfiguration(key, f"an array of at most {MOST_PATHS} paths")
    for path in value:
        if not isinstance(path, str) or not path.startswith("/") or len(path) > MOST_TEXT_CHARACTERS:
            raise InvalidConfiguration(key, "paths that begin with /")
    return tuple(value)


def _one_or_more_names(key: str, value: Any) -> Any:
    names = value if isinstance(value, list) else [value]
    if not names or len(names) > 20:
        raise InvalidConfiguration(key, "a domain, or an array of at most 20")
    for name in names:
        _text(key, name)
    return value


def _object(key: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidConfiguration(key, "an object")
    return value


def _anything(_: str, value: Any) -> Any:
    return value


_KEYS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType(
    {
        "applicationId": _text,
        "token": _anything,
        "getToken": _anything,
        "power": _boolean,
        "monitor": _boolean,
        "prefilledDomain": _one_or_more_names,
        "hostRequired": _boolean,
        "dnsRecords": _anything,
        "checkConflicts": _boolean,
        "defaultSubdomain": _text,
        "supportForSubdomains": _boolean,
        "forceSubdomain": _boolean,
        "forceManualSetup": _boolean,
        "manualSetupDocumentation": _text,
        "wwwRedirect": _boolean,
        "secureRootDomain": _boolean,
        "userId": _text,
        "applicationName": _text,
        "locale": _text,
        "whiteLabel": _object,
    }
)
"""The keys of the configuration, and how each is read."""

_NOT_STORED: Final = frozenset({"applicationId", "token", "getToken"})

_RECORD_KEYS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType(
    {
        "type": _kind,
        "host": _text,
        "value": _long_text,
        "ttl": _ttl,
        "priority": _priority,
        "ssl": _boolean,
        "applicationUrl": _url,
        "redirectTo": _redirect,
        "powerRootPathAccess": _paths,
        "monitor": _boolean,
    }
)


def _first(prefilled: Any) -> str | None:
    """With several, the person chooses one."""
    return prefilled if isinstance(prefilled, str) else None


# Choosing the domain -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenDomain:
    """`domain` is the apex, `subdomain` what stands before it."""

    domain: str
    subdomain: str | None

    @property
    def host(self) -> str:
        return f"{self.subdomain}.{self.domain}" if self.subdomain else self.domain


def choose_domain(configuration: Configuration, text: str, subdomain: str | None) -> ChosenDomain:
    """The domain a person entered, a subdomain within it or beside it, and the configuration's defaults.

    Raises: `InvalidConfiguration`.
    """
    name = _domain_name(text)
    labels = name.subdomain
    if subdomain is not None and subdomain.strip() not in ("", APEX):
        if labels is not None:
            raise InvalidConfiguration("subdomain", f"none, as the domain has one: {labels}")
        labels = _labels(subdomain.strip(), name.registrable)
    if labels is None and configuration.default_subdomain is not None:
        labels = _labels(configuration.default_subdomain, name.registrable)
    if labels is None and configuration.host_required:
        labels = _DEFAULT_SUBDOMAIN
    if labels is None and configuration.force_subdomain:
        raise InvalidConfiguration(
            "subdomain", "a subdomain: the root is not connected here", code="subdomain_required"
        )
    if labels is not None and not configuration.support_for_subdomains:
        raise InvalidConfiguration("domain", f"a root domain: {name.registrable}", code="subdomain_not_supported")
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


# Resolving ---------------------------------------------------------------------------------------------------------


def resolve(configuration: Configuration, chosen: ChosenDomain, around: Surroundings) -> tuple[Requested, ...]:
    """The records for the chosen domain, without placeholders; `common.connect.root` fits those at the root.

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
        requested += _resolve_one(configuration, f"dnsRecords[{number}]", template, chosen, around)
    try:
        check_size([each.record for each in requested])
    except InvalidRecord as error:
        raise InvalidConfiguration("dnsRecords", str(error)) from error
    return tuple(requested)


def resolve_without_domain(configuration: Configuration, around: Surroundings) -> list[dict[str, Any]]:
    """The records before a domain is chosen, in the API's form. Placeholders for parts of the domain stay."""
    found: list[dict[str, Any]] = []
    for template in configuration.of_subdomain or configuration.of_domain:
        target = _target(template, around) or CNAME_TARGET
        fields = {"type": template.type, "host": template.host.replace(CNAME_TARGET, target), "ttl": template.ttl}
        priority = {} if template.priority is None else {"priority": template.priority}
        values = _addresses(template, around) or [template.value.replace(CNAME_TARGET, target)]
        found += [fields | {"value": value} | priority for value in values]
    return found


def _target(template: RecordTemplate, around: Surroundings) -> str:
    return around.secure_cname_target if template.ssl else around.cname_target


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
    around: Surroundings,
) -> list[Requested]:
    target = _target(template, around)
    if CNAME_TARGET in template.value + template.host and not target:
        raise InvalidConfiguration(f"{key}.value", "an application with a cname target", code="no_cname_target")
    host = _without_empty_labels(_fill(template.host, chosen, target)) or APEX
    values = _addresses(template, around) or [
        _without_empty_labels_if_name(template, _fill(template.value, chosen, target))
    ]
    if not values:
        raise InvalidConfiguration(
            f"{key}.value", f"an address of ours: this installation has none for {template.type}"
        )
    purpose = _purpose(configuration, key, template, chosen, target)
    return [Requested(_record(key, template, host, value, chosen.domain), purpose) for value in values]


def _addresses(template: RecordTemplate, around: Surroundings) -> list[str]:
    if template.value != SERVICE_SERVERS:
        return []
    is_v6 = template.type == "AAAA"
    return [each for each in around.service_servers if (":" in each) is is_v6][:MOST_ROOT_ADDRESSES]


def _fill(text: str, chosen: ChosenDomain, target: str) -> str:
    sld, _, tld = chosen.domain.partition(".")
    values = {"CNAME_TARGET": target, "SUBDOMAIN": chosen.subdomain or "", "SLD": sld, "TLD": tld}
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _without_empty_labels(text: str) -> str:
    """A subdomain that is nothing leaves no dot behind; a final dot stays."""
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
) -> Purpose:
    redirect_to = _fill(template.redirect_to, chosen, target) if template.redirect_to else None
    if redirect_to is not None:
        try:
            redirect_to = str(parse_redirect_target(redirect_to))
        except FrontageError as error:
            raise InvalidConfiguration(f"{key}.redirectTo", f"a host or a URL: {error}") from error
    is_powered = configuration.power and not template.ssl and template.application_url is not None
    return Purpose(
        product="secure" if template.ssl else "power" if is_powered else None,
        application_url=template.application_url,
        redirect_to=redirect_to,
        root_path_access=template.root_path_access,
        is_monitored=configuration.monitor if template.monitor is None else template.monitor,
    )
