"""What a provider states of itself: the ``_domainconnect`` record and the settings of a domain.

Rules (draft-ietf-dconn-domainconnect, Provider Discovery)
    the record is an authority with or without a path: no scheme, query, fragment or user
    URLs are https; plain http counts only for an address that the operator allows to be dialled: a lab
    properties that are not known are ignored; known ones of a wrong type spoil the whole
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson

from common.errors import FrontageError
from common.ip_addresses import IPAddress, parse_address

IsAllowed = Callable[[IPAddress], bool]
"""Whether the operator allows a private address to be dialled."""

_AUTHORITY_AND_PATH = re.compile(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*"
)
_ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
_MOST_CHARACTERS: Final = 255
_MOST_URL_CHARACTERS: Final = 1024
_MOST_NAME_SERVERS: Final = 32
_DEFAULT_PIXELS: Final = 750
_LEAST_PIXELS, _MOST_PIXELS = 300, 2000


class InvalidSettings(FrontageError):
    """The provider's record or settings are not of the draft's form."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What a provider states of itself for one domain.

    URLs have no final slash; `width` and `height` are the consent window's, in pixels. `sync_url` None: the
    provider has no consent page for this domain.
    """

    provider_id: str
    name: str
    api_url: str
    sync_url: str | None = None
    width: int = _DEFAULT_PIXELS
    height: int = _DEFAULT_PIXELS
    control_panel_url: str | None = None
    name_servers: tuple[str, ...] = ()


def settings_url(record: str, domain: str, is_allowed: IsAllowed) -> str:
    """Return the URL of the settings of `domain`, by the text of its ``_domainconnect`` record.

    Raises: `InvalidSettings`.
    """
    text = record.strip().removesuffix("/")
    if len(text) > _MOST_CHARACTERS or not _AUTHORITY_AND_PATH.fullmatch(text) or ".." in text:
        raise InvalidSettings("the _domainconnect record is no authority and path")
    host = _host_of(f"https://{text}")
    return f"{_scheme_for(host, is_allowed)}://{text}/v2/{quote(domain)}/settings"


def template_url(settings: ProviderSettings, provider_id: str, service: str) -> str:
    """Return the URL at which the provider answers whether it supports a template of `provider_id`."""
    return settings.api_url + template_path(provider_id, service)


def template_path(provider_id: str, service: str) -> str:
    """Return the path of a template beneath the provider's API, and beneath its consent pages."""
    return f"/v2/domainTemplates/providers/{quote(provider_id)}/services/{quote(service)}"


def parse_settings(body: bytes, domain: str, is_allowed: IsAllowed) -> ProviderSettings:
    """Parse the settings that a provider has of a domain.

    Raises: `InvalidSettings`.
    """
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidSettings("the settings are no JSON") from error
    if not isinstance(given, dict):
        raise InvalidSettings("the settings are no JSON object")
    provider_id = _text(given, "providerId")
    name = _text(given, "providerDisplayName", is_required=False) or _text(given, "providerName")
    api_url = _url(given, "urlAPI", is_allowed)
    if provider_id is None or not _ID.fullmatch(provider_id):
        raise InvalidSettings("providerId is no id")
    if name is None or api_url is None:
        raise InvalidSettings("providerName and urlAPI are required")
    return ProviderSettings(
        provider_id,
        name,
        api_url,
        _url(given, "urlSyncUX", is_allowed),
        _pixels(given, "width"),
        _pixels(given, "height"),
        _control_panel(given, domain, is_allowed),
        _name_servers(given),
    )


def _text(given: Mapping[str, Any], key: str, *, is_required: bool = True) -> str | None:
    value = given.get(key)
    if value is None and not is_required:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_CHARACTERS or not value.isprintable():
        raise InvalidSettings(f"{key} is no printable text of up to {_MOST_CHARACTERS} characters")
    return value


def _url(given: Mapping[str, Any], key: str, is_allowed: IsAllowed) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _MOST_URL_CHARACTERS or "?" in value or "#" in value:
        raise InvalidSettings(f"{key} is no URL without query and fragment")
    return _check_url(key, value, is_allowed).removesuffix("/")


def _control_panel(given: Mapping[str, Any], domain: str, is_allowed: IsAllowed) -> str | None:
    """Return the URL of a page for people; a bad one is left out."""
    value = given.get("urlControlPanel")
    if not isinstance(value, str) or len(value) > _MOST_URL_CHARACTERS:
        return None
    try:
        return _check_url("urlControlPanel", value.replace("%domain%", quote(domain)), is_allowed)
    except InvalidSettings:
        return None


def _check_url(key: str, text: str, is_allowed: IsAllowed) -> str:
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise InvalidSettings(f"{key} has characters that no URL has")
    host, scheme = _host_of(text), urlsplit(text).scheme
    if scheme not in ("https", _scheme_for(host, is_allowed)):
        raise InvalidSettings(f"{key} is no https URL")
    return text


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidSettings("the URL has no valid authority") from error
    if not host or "@" in parts.netloc:
        raise InvalidSettings("the URL has no authority, or a user")
    return host


def _scheme_for(host: str, is_allowed: IsAllowed) -> str:
    address = parse_address(host)
    return "http" if address is not None and is_allowed(address) else "https"


def _pixels(given: Mapping[str, Any], key: str) -> int:
    value = given.get(key)
    if value is None:
        return _DEFAULT_PIXELS
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSettings(f"{key} is no number")
    return int(min(max(value, _LEAST_PIXELS), _MOST_PIXELS))


def _name_servers(given: Mapping[str, Any]) -> tuple[str, ...]:
    value = given.get("nameServers")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidSettings("nameServers is no list of names")
    names: Sequence[str] = value[:_MOST_NAME_SERVERS]
    return tuple(each.strip().lower().removesuffix(".") for each in names)
