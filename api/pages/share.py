"""The page behind a sharing link: the records to create, so that each field can be copied.

With JavaScript each field has a button that copies it (`api/sdk/copy_buttons.js`), and the connect modal opens over the
page (`api/sdk/shared.js`); without, it is complete."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from common.db.shares import Share

_HERE = Path(__file__).parent
CSS = (_HERE / "share.css").read_text("utf-8")
_SHARE = Template((_HERE / "share.html").read_text("utf-8"))
_GONE = Template((_HERE / "gone.html").read_text("utf-8"))
_FIELDS = {"type": "Type", "host": "Host", "value": "Value", "ttl": "TTL", "priority": "Priority"}
_ANY_DOMAIN = "your domain"
_PLACEHOLDERS = (
    "<p>In these records <code>{SUBDOMAIN}</code> stands for what is before the domain (<b>shop</b> in "
    "shop.example.com), <code>{SLD}</code> and <code>{TLD}</code> for the domain's own parts (<b>example</b> and "
    "<b>com</b>).</p>"
)

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "script-src 'self'; connect-src 'self'; img-src https: data:; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()}'",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Vary": "Accept",
}
"""Of every answer under ``/share``: every holder of the link may read it, and the page leaks it to no other site."""


def render_share(share: Share) -> str:
    """Render the page behind a sharing link."""
    domain = share.domain or _ANY_DOMAIN
    fields = {name: head for name, head in _FIELDS.items() if any(name in record for record in share.records)}
    return _SHARE.substitute(
        css=CSS,
        name=escape(f"{share.subdomain}.{domain}" if share.subdomain else domain),
        domain=escape(domain),
        these="this record" if len(share.records) == 1 else f"these {len(share.records)} records",
        placeholders=_PLACEHOLDERS if share.domain is None and any(map(_has_placeholder, share.records)) else "",
        heads="".join(f"<th>{head}</th>" for head in fields.values()),
        rows="\n".join(_row(record, fields) for record in share.records),
        expires=f"{share.expires_at:%-d %B %Y}",
        expires_iso=f"{share.expires_at:%Y-%m-%d}",
    )


def render_gone() -> str:
    """Render the page of a link that has expired."""
    return _GONE.substitute(css=CSS)


def _has_placeholder(record: Mapping[str, Any]) -> bool:
    return any(name in f"{record['host']} {record['value']}" for name in ("{SUBDOMAIN}", "{SLD}", "{TLD}"))


def _row(record: Mapping[str, Any], fields: Mapping[str, str]) -> str:
    return f"<tr>{''.join(_cell(head, record.get(name)) for name, head in fields.items())}</tr>"


def _cell(head: str, value: object) -> str:
    content = "" if value is None else f"<code>{escape(str(value))}</code>"
    return f'<td data-name="{head}">{content}</td>'
