"""The page that a partner shows its customer: how one domain is, in plain words and the modal's languages. Pure.

With JavaScript each field of a record has a button that copies it (`api/sdk/copy_buttons.js`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from api.pages.share import CSS

_HERE = Path(__file__).parent
_PAGE = Template((_HERE / "status.html").read_text("utf-8"))
WORDS: Final[Mapping[str, Mapping[str, str]]] = json.loads((_HERE / "status.json").read_text("utf-8"))
"""By locale, then by the word of the status, and `_more` for the sentence below it."""

_ENGLISH: Final = "en"
_RIGHT_TO_LEFT: Final = frozenset({"ar"})
_LONGEST_HEADER: Final = 200
_RANGE: Final = re.compile(r"\s*([A-Za-z-]{1,20})\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?")

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "script-src 'self'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()}'",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language",
}


class ShownRecord(NamedTuple):
    """A record for the customer to set."""

    type: str
    host: str
    value: str


def choose_locale(wanted: str, accepted: str) -> str:
    """Return the locale of the page: `wanted` where it is one, else by ``Accept-Language`` (RFC 9110 §12.5.4)."""
    found = [_RANGE.fullmatch(each) for each in accepted[:_LONGEST_HEADER].split(",")]
    ranges = sorted((each for each in found if each), key=lambda each: -float(each[2] or 1))
    for language in (wanted, *(each[1] for each in ranges)):
        for locale in (language, language.partition("-")[0]):
            known = next((each for each in WORDS if each.lower() == locale.lower()), None)
            if known is not None:
                return known
    return _ENGLISH


def render_status(
    locale: str, domain: str, partner: str, word: str, records: Sequence[ShownRecord], until: datetime
) -> str:
    """Render the page; `records` are those to set, where some are missing."""
    words = WORDS[locale]

    def say(name: str, mark: str) -> str:
        named = {"{domain}": domain, "{partner}": partner, "{date}": f"{until:%Y-%m-%d}"}
        return re.sub(r"\{\w+\}", lambda found: mark.format(escape(named[found[0]])), escape(words[name], quote=False))

    return _PAGE.substitute(
        locale=locale,
        direction="rtl" if locale in _RIGHT_TO_LEFT else "ltr",
        title=say(word, "{}"),
        css=CSS,
        heading=say(word, "<bdi>{}</bdi>").replace(".", ".<wbr>"),  # a long domain breaks behind its dots
        words=say(f"{word}_more", "<bdi>{}</bdi>"),
        records=_render_records(words, records) if records else "",
        until=say("until", "<bdi>{}</bdi>"),
    )


def _render_records(words: Mapping[str, str], records: Sequence[ShownRecord]) -> str:
    heads = [escape(words[name]) for name in ShownRecord._fields]
    rows = "".join(
        f"<tr>{''.join(_cell(*each) for each in zip(heads, record, strict=True))}</tr>" for record in records
    )
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    buttons = f'data-copy="{escape(words["copy"])}" data-copied="{escape(words["copied"])}"'
    return (
        f"<p>{escape(words['set'])}</p>\n<table {buttons}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        '\n<p id="status" class="unseen" role="status"></p>'
    )


def _cell(head: str, text: str) -> str:
    return f'<td data-name="{head}"><code dir="ltr">{escape(text)}</code></td>'
