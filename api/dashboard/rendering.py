"""Pages from templates, with the headers that every one of them has.

Templates escape everything (Jinja2's autoescape); they get values, and of secrets only those that the handler means to
show. Styles and scripts are files of ours, addressed by a digest of their content, so that a browser keeps them and
still gets a new version at once.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from api.dashboard import charts, codes, words
from api.dashboard.browser import FLASH_SECONDS, ROOT, Cookies
from api.dashboard.visitors import VISITOR
from api.requests import REQUEST_ID
from api.rules.audit_values import changes_in_words
from api.rules.plain_text import Exposure
from common.clock import Clock

_HERE = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
}
"""Of every answer under ``/dashboard``."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the dashboard's pages, and the digest in its address."""

    content: bytes
    content_type: str
    digest: str


def _read_assets() -> dict[str, StaticFile]:
    found = {}
    for path in sorted((_HERE / "static").iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            found[path.name] = StaticFile(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:12])
    return found


@dataclass(frozen=True, slots=True)
class Flash:
    """A sentence for the next page: what was done, or why not."""

    text: str
    tone: str = "good"


@dataclass(slots=True)
class Renderer:
    """Renders pages. One instance per process; `api.dashboard.app` creates it."""

    clock: Clock
    cookies: Cookies
    exposure: Exposure | None = None  # what every page warns of
    assets: dict[str, StaticFile] = field(default_factory=_read_assets)
    _templates: Environment = field(init=False)

    def __post_init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.globals |= {"root": ROOT, "asset": self._asset_url, "chart": charts, "exposure": self.exposure}
        self._templates.filters |= {
            "ago": lambda at: words.ago(at, self.clock.now()),
            "moment": words.moment,
            "local": _local_time,
            "sentence": words.sentence,
            "day": words.day,
            "count": words.count,
            "until": lambda at: words.until(at, self.clock.now()),
            "seconds": words.seconds,
            "milliseconds": words.milliseconds,
            "bytes": words.size,
            "share": words.share,
            "asjson": _as_json,
            "action": codes.action,
            "event_type": codes.event_type,
            "outcome": codes.outcome,
            "claim": codes.claim,
            "way": codes.way,
            "step": codes.STEPS.__getitem__,
            "flow_way": codes.FLOW_WAYS.__getitem__,
            "codes": with_codes,
            "changes": lambda entry: changes_in_words(entry.before, entry.after),
            "metadata_lines": lambda notes: "\n".join(f"{key}={text}" for key, text in notes.items()),
            "unicode_name": words.unicode_name,
            "time": lambda at: _time_element(at, words.ago(at, self.clock.now())),
        }

    def page(self, request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
        """Render a page for the visitor of the request."""
        visitor = request.get(VISITOR)
        flash, of_guest = self._read_flash(request), values.pop("csrf", "")
        text = self._templates.get_template(template).render(
            visitor=visitor,
            csrf=visitor.csrf_token if visitor is not None else of_guest,
            path=request.path,
            request_id=request.get(REQUEST_ID),
            now=self.clock.now(),
            **{"flash": flash, **values},
        )
        response = web.Response(text=text, status=status, content_type="text/html", charset="utf-8")
        if flash is not None:
            self.cookies.remove(response, "flash")
        return response

    def fragment(self, template: str, **values: Any) -> str:
        """Render a part of a page from `values` alone: it may be shown to several visitors."""
        return self._templates.get_template(template).render(now=self.clock.now(), **values)

    def redirect(self, location: str, flash: Flash | None = None) -> web.Response:
        """See another page of ours next (303)."""
        response = web.Response(status=303, headers={"Location": location})
        if flash is not None:
            packed = urlsafe_b64encode(json.dumps([flash.tone, flash.text[:300]]).encode()).decode()
            self.cookies.write(response, "flash", packed, seconds=FLASH_SECONDS)
        return response

    def _read_flash(self, request: web.Request) -> Flash | None:
        packed = self.cookies.read(request, "flash")
        if packed is None:
            return None
        try:
            tone, text = json.loads(urlsafe_b64decode(packed))
        except ValueError:
            return None
        is_known = tone in ("good", "warn", "bad") and isinstance(text, str)
        return Flash(text, tone) if is_known else None

    def _asset_url(self, name: str) -> str:
        return f"{ROOT}/static/{self.assets[name].digest}/{name}"


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def with_codes(text: str) -> Markup:
    """Sentences of messages: what stands between backticks is code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def _local_time(at: datetime) -> Markup:
    """Return a time that the page's script shows in the reader's zone, with UTC as its title."""
    shown = words.moment(at)
    return Markup('<time datetime="{}" title="{}" data-local>{}</time>').format(at.isoformat(), shown, shown)


def _time_element(at: datetime | None, text: str) -> Markup:
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), words.moment(at), text)
