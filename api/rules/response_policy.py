"""What an application, or one of its domains, may have responses carry, as it is stored and as edges read it.

Rules
    a field is added where the origin's response has none of that name, so an origin's own word stands
    what frames a message, keeps a connection, sets cookies or redirects is the origin's alone
    HSTS for names beneath a customer's domain, or for ever (preload), is about names that this service does not serve:
        the partner states that each customer has agreed
    what a domain states holds before what its application states, each part and each other field by itself
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from api.rules.application_settings import InvalidSetting

ReferrerPolicy: TypeAlias = Literal[
    "no-referrer",
    "no-referrer-when-downgrade",
    "origin",
    "origin-when-cross-origin",
    "same-origin",
    "strict-origin",
    "strict-origin-when-cross-origin",
    "unsafe-url",
]
Compression: TypeAlias = Literal["off", "on", "always"]
"""Whether edges compress what origins send uncompressed; `always`: also where a response that sets a cookie may hold
parts of the request."""
LONGEST_HSTS_SECONDS: Final = 2 * 366 * 86_400
LEAST_PRELOAD_SECONDS: Final = 365 * 86_400  # hstspreload.org
MOST_FIELDS: Final = 20
_MOST_BYTES: Final = 4096
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
_VALUE = re.compile(r"[!-~](?:[ -~]{0,1998}[!-~])?")
_OURS: Final = frozenset({"strict-transport-security", "x-content-type-options", "referrer-policy"})
_ORIGINS: Final = frozenset(
    {"age", "alt-svc", "authentication-info", "clear-site-data", "connection", "date", "expect", "keep-alive"}
    | {"location", "refresh", "server", "set-cookie", "set-cookie2", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "vary", "via", "www-authenticate"}
)
_ORIGINS_PREFIXES: Final = ("content-encoding", "content-length", "content-range", "proxy-", "access-control-")


@dataclass(frozen=True, slots=True)
class Hsts:
    """Strict-Transport-Security. `customers_agree`: to what is beyond the domains that are served."""

    seconds: int
    with_subdomains: bool = False
    preload: bool = False
    customers_agree: bool = False


def read_policy(
    hsts: Hsts | None,
    *,
    nosniff: bool,
    referrer_policy: ReferrerPolicy | None,
    fields: Mapping[str, str],
    compression: Compression = "off",
) -> dict[str, Any] | None:
    """Return the policy as it is stored, None where it adds nothing. Raises: `InvalidSetting`."""
    stored: dict[str, Any] = {} if hsts is None else _read_hsts(hsts)
    if nosniff:
        stored["nosniff"] = True
    if referrer_policy is not None:
        stored["referrer_policy"] = referrer_policy
    if compression != "off":
        stored["compression"] = compression
    if fields:
        stored["fields"] = _read_fields(fields)
    return stored or None


def check_domain_policy(hsts: Hsts | None, fields: Mapping[str, str]) -> None:
    """Refuse what a domain may not state; a field with an empty value is one that it does not send.

    Raises: `InvalidSetting`.
    """
    if hsts is not None:
        _read_hsts(hsts)
    _read_fields({name: value or "-" for name, value in fields.items()})


def _read_hsts(hsts: Hsts) -> dict[str, Any]:
    if not 0 <= hsts.seconds <= LONGEST_HSTS_SECONDS:
        raise InvalidSetting(f"hsts: expected 0 to {LONGEST_HSTS_SECONDS} seconds")
    if (hsts.with_subdomains or hsts.preload) and not hsts.customers_agree:
        raise InvalidSetting(
            "hsts: includeSubDomains and preload bind names of your customers that are not served here, and cannot be"
            " taken back for months: send customersAgree with them once every customer has agreed"
        )
    if hsts.preload and not (hsts.with_subdomains and hsts.seconds >= LEAST_PRELOAD_SECONDS):
        raise InvalidSetting(f"hsts: preload goes with includeSubDomains and {LEAST_PRELOAD_SECONDS} seconds at least")
    flags = {"hsts_subdomains": hsts.with_subdomains, "hsts_preload": hsts.preload}
    return {"hsts_seconds": hsts.seconds} | {name: True for name, is_on in flags.items() if is_on}


def _read_fields(fields: Mapping[str, str]) -> dict[str, str]:
    if len(fields) > MOST_FIELDS or sum(len(name) + len(value) for name, value in fields.items()) > _MOST_BYTES:
        raise InvalidSetting(f"fields: at most {MOST_FIELDS}, and {_MOST_BYTES} bytes of names and values")
    if len({name.lower() for name in fields}) < len(fields):
        raise InvalidSetting("fields: a name stands there twice")
    for name, value in fields.items():
        lower = name.lower()
        if not _NAME.fullmatch(name):
            raise InvalidSetting(f"fields: {name[:40]!r} is no name of a field: letters, digits and hyphens")
        if lower in _OURS:
            raise InvalidSetting(f"fields: {name} has a setting of its own")
        if lower in _ORIGINS or lower.startswith(_ORIGINS_PREFIXES):
            raise InvalidSetting(f"fields: {name} is the origin's alone to send")
        if not _VALUE.fullmatch(value):
            raise InvalidSetting(f"fields: the value of {name} has 1 to 2000 visible ASCII characters and blanks")
    return dict(fields)


def read_lines(text: str) -> dict[str, str]:
    """Return the fields of lines such as ``Permissions-Policy: camera=()``. Raises: `InvalidSetting`."""
    fields: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or name.strip() in fields:
            raise InvalidSetting(
                f"{line[:60]!r}: expected a line such as Permissions-Policy: camera=(), each name once"
            )
        fields[name.strip()] = value.strip()
    return fields
