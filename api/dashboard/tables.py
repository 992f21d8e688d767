"""Tables as files: CSV that spreadsheets open, and that runs nothing there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from aiohttp import web

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet takes for a formula."""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV (RFC 4180), with an apostrophe before what would be a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    writer.writerows([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row] for row in rows)
    return text.getvalue()


def respond_with_table(name: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> web.Response:
    """Send rows as the file `name`.csv."""
    return web.Response(
        text=write_table(heads, rows),
        content_type="text/csv",
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"},
    )
