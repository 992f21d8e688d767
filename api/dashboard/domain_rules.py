"""Reads the form of a domain: notes, rules for visitors, and what responses carry, as a body has them.

Each is left out of a form from before an upgrade, which has no fields for it: what is stored stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from aiohttp import web

from api.dashboard.application_view import RefusedField
from api.dashboard.middlewares import FORM, text_of
from api.errors import Refused, invalid_parameter
from api.rules.application_settings import InvalidSetting
from api.rules.response_policy import ReferrerPolicy, read_lines

HSTS_CHOICES: Final = (
    ("0", "Ended: browsers forget it"),
    ("86400", "One day"),
    ("2592000", "30 days"),
    ("31536000", "One year"),
    ("63072000", "Two years"),
)
COMPRESSION_CHOICES: Final = (
    ("off", "As the origin sends it"),
    ("on", "Compress text that the origin does not"),
    ("always", "Also where a cookie is set and the request may be reflected"),
)
_INHERITED: Final = ("", "As the application")
_NOT_SENT: Final = ("off", "Not sent")
RESPONSE_CHOICES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "hsts": (_INHERITED, _NOT_SENT, *HSTS_CHOICES),
    "nosniff": (_INHERITED, ("on", "Sent"), _NOT_SENT),
    "referrer_policy": (_INHERITED, _NOT_SENT, *((each, each) for each in get_args(ReferrerPolicy))),
    "compression": (_INHERITED, *COMPRESSION_CHOICES),
}
"""What the form of a domain offers, by field."""


def read(request: web.Request) -> dict[str, Any]:
    """Return the values of the form. Raises: `Refused`."""
    return _read_metadata(request) | _read_visitors(request) | _read_responses(request)


def response_values(stored: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the form's fields for what a domain states of its responses; empty: the application's applies."""
    policy = stored or {}
    hsts = policy.get("hsts")
    of_hsts: Mapping[str, Any] = hsts if isinstance(hsts, Mapping) else {}
    nosniff = policy.get("nosniff")
    return {
        "hsts": str(of_hsts["maxAge"]) if of_hsts else hsts or "",
        "hsts_subdomains": "on" if of_hsts.get("includeSubDomains") else "",
        "hsts_preload": "on" if of_hsts.get("preload") else "",
        "customers_agree": "on" if of_hsts.get("customersAgree") else "",
        "nosniff": "" if nosniff is None else "on" if nosniff else "off",
        "referrer_policy": policy.get("referrerPolicy", ""),
        "compression": policy.get("compression", ""),
        "response_fields": "\n".join(f"{name}: {value}" for name, value in policy.get("fields", {}).items()),
    }


def _read_metadata(request: web.Request) -> dict[str, dict[str, str]]:
    """Return the notes of a form as a body has them, one a line; none of a page from before an upgrade.

    Raises: `Refused`.
    """
    if "metadata" not in request[FORM]:
        return {}
    notes: dict[str, str] = {}
    for line in filter(None, map(str.strip, text_of(request, "metadata").splitlines())):
        key, equals, text = line.partition("=")
        if not equals:
            raise Refused(invalid_parameter("metadata"), hint="one note a line, such as plan=pro")
        notes[key.strip()] = text.strip()
    return {"metadata": notes}


def _read_visitors(request: web.Request) -> dict[str, dict[str, Any]]:
    """Return the rules for visitors of a form as a body has them; none of a page from before an upgrade.

    Raises: `Refused`.
    """
    if "allow" not in request[FORM]:
        return {}
    rules: dict[str, Any] = {name: text_of(request, name).split() for name in ("allow", "deny")}
    if rate := text_of(request, "rate_limit").strip():
        requests, _, seconds = rate.partition("/")
        if not (requests.isdecimal() and (seconds or "1").isdecimal() and len(rate) < 20):
            raise Refused(invalid_parameter("visitors"), hint="the limit: requests and seconds, such as 100/10")
        rules["rateLimit"] = {"requests": int(requests), "seconds": int(seconds or "1")}
    if text_of(request, "tls13") == "on":
        rules["minimumTls"] = "1.3"
    return {"visitors": rules}


def _read_responses(request: web.Request) -> dict[str, dict[str, Any]]:
    """Return what the domain states of its responses.

    Raises: `Refused`.
    """
    if "response_fields" not in request[FORM]:
        return {}
    try:
        policy: dict[str, Any] = {"fields": read_lines(text_of(request, "response_fields"))}
    except InvalidSetting as error:
        raise RefusedField("responsePolicy", str(error)) from error
    if hsts := text_of(request, "hsts"):
        policy["hsts"] = hsts if hsts == "off" else _read_hsts(request, hsts)
    if nosniff := text_of(request, "nosniff"):
        policy["nosniff"] = nosniff == "on"
    for name, field in (("referrerPolicy", "referrer_policy"), ("compression", "compression")):
        if chosen := text_of(request, field):
            policy[name] = chosen
    return {"responsePolicy": policy}


def _read_hsts(request: web.Request, seconds: str) -> dict[str, Any]:
    if not (seconds.isdecimal() and len(seconds) < 12):
        raise RefusedField("responsePolicy", "hsts: expected seconds")
    flags = {"includeSubDomains": "hsts_subdomains", "preload": "hsts_preload", "customersAgree": "customers_agree"}
    return {"maxAge": int(seconds)} | {name: True for name, field in flags.items() if text_of(request, field) == "on"}
