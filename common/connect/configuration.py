"""The configuration of the connect modal: read strictly. `api.connect.resolution` resolves it for one domain.

Rules
    unknown keys are ignored, each with a warning; a key with a wrong value is refused, and what was expected is stated
    null is the same as absent; ``token`` and functions are for the browser only and never stored
    what is stored as it was sent has no NUL, which Postgres keeps nowhere, and a bounded depth
    placeholders are case-sensitive and stand in `host` and `value` only
    ``{SERVICE_SERVERS}`` stands alone, in an A or AAAA record
    ``dnsRecords`` as an object: ``subDomain`` applies where there is a subdomain, ``domain`` where there is none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from common.errors import FrontageError
from common.records import (
    LARGEST_TTL,
    MOST_VALUE_CHARACTERS,
    RECORD_TYPES,
)
from common.urls import parse_application_url

MOST_RECORDS = 50
"""Most records of one configuration: each is asked about at every inspection."""
MOST_TEXT_CHARACTERS = 1024
MOST_PATHS = 100
_MOST_LEVELS = 16
_MOST_WARNINGS = 50

SERVICE_SERVERS: Final = "{SERVICE_SERVERS}"
PLACEHOLDER = re.compile(r"\{(SERVICE_SERVERS|CNAME_TARGET|SUBDOMAIN|SLD|TLD)\}")
_LOOKS_LIKE_ONE = re.compile(r"\{(service_servers|cname_target|subdomain|sld|tld)\}", re.IGNORECASE)
_ROUTED_TYPES: Final = ("A", "AAAA", "CNAME")


class InvalidConfiguration(FrontageError):
    """The value of `key` is not valid; the text states what was expected."""

    def __init__(self, key: str, expected: str, *, code: str | None = None) -> None:
        super().__init__(expected)
        self.key = key
        self.code = code


@dataclass(frozen=True, slots=True)
class RecordTemplate:
    """An entry of ``dnsRecords``, placeholders and all.

    `monitor` None: the configuration's applies.
    """

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
    """The configuration of the connect modal, as it was sent and checked.

    `stored` is what is kept and shared of what was sent. `prefilled_domain`: None where the person chooses one of
    several `prefilled_domains`. `of_domain` and `of_subdomain` are the same where ``dnsRecords`` is an array.
    """

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
    prefilled_domains: tuple[str, ...] = ()
    user_id: str | None = None
    stored: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    warnings: tuple[str, ...] = ()


# Reading ---------------------------------------------------------------------------------------------------------


def parse_configuration(given: Mapping[str, Any]) -> Configuration:
    """Parse and check a configuration.

    Raises: `InvalidConfiguration`.
    """
    known = {key: value for key, value in given.items() if key in _KEYS and value is not None}
    values = {key: _KEYS[key](key, value) for key, value in known.items()}
    stored = {key: value for key, value in known.items() if key not in _NOT_STORED}
    for key, value in stored.items():
        if not _is_storable(value):
            raise InvalidConfiguration(key, f"no NUL, and at most {_MOST_LEVELS} levels of objects and arrays")
    of_domain, of_subdomain, warnings = _templates(values.get("dnsRecords"))
    power = values.get("power", False)
    if power and not any(template.application_url for template in (*of_domain, *of_subdomain)):
        raise InvalidConfiguration("power", "at least one record with an applicationUrl, which the domain is to show")
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
        prefilled_domain=_only_prefilled(values.get("prefilledDomain")),
        prefilled_domains=_all_prefilled(values.get("prefilledDomain")),
        user_id=values.get("userId"),
        stored=MappingProxyType(stored),
        warnings=_bounded((*_unknown_keys(given, _KEYS, ""), *warnings)),
    )


def _is_storable(value: Any, levels: int = _MOST_LEVELS) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    return not isinstance(value, list) or (levels > 0 and all(_is_storable(each, levels - 1) for each in value))


def _bounded(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first warnings: each answer and each event of a flow has them."""
    more = len(warnings) - _MOST_WARNINGS
    return warnings if more <= 0 else (*warnings[:_MOST_WARNINGS], f"{more} more warnings are left out")


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
            raise InvalidConfiguration(f"{key}.{name}", "a value: a record has type, host, value and ttl")
    _warn_of_case(key, values, warnings)
    kind = values["type"]
    if SERVICE_SERVERS in values["value"] and (kind not in ("A", "AAAA") or values["value"].strip() != SERVICE_SERVERS):
        raise InvalidConfiguration(f"{key}.value", f"{SERVICE_SERVERS} alone, in an A or AAAA record")
    if SERVICE_SERVERS in values["host"]:
        raise InvalidConfiguration(f"{key}.host", "a name, and no addresses of our servers")
    for name in ("ssl", "applicationUrl", "redirectTo", "powerRootPathAccess"):
        if values.get(name) and kind not in _ROUTED_TYPES:
            raise InvalidConfiguration(f"{key}.{name}", "an A, AAAA or CNAME record: no other type takes it")
    url = values.get("applicationUrl")
    if values.get("ssl") and url is not None and parse_application_url(url).path not in ("", "/"):
        raise InvalidConfiguration(
            f"{key}.applicationUrl", "a URL without a path where ssl is true: requests keep their own path"
        )
    if values.get("redirectTo") and not values.get("ssl"):
        raise InvalidConfiguration(f"{key}.redirectTo", "ssl: true beside it: only such a record redirects")
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
            if not PLACEHOLDER.fullmatch(found[0]):
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
    """Read a host or a URL, which is checked only once its placeholders are resolved."""
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
        "configurationId": _text,
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

_NOT_STORED: Final = frozenset({"applicationId", "configurationId", "token", "getToken"})

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


def _only_prefilled(prefilled: Any) -> str | None:
    """Return the prefilled domain, or None where the person chooses one of several."""
    return prefilled if isinstance(prefilled, str) else None


def _all_prefilled(prefilled: Any) -> tuple[str, ...]:
    return (prefilled,) if isinstance(prefilled, str) else tuple(prefilled or ())
