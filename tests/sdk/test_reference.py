"""The handbook's page of the modal names every key, event, step and code of the source, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Page

from tests.browser import SESSION_LOOP
from tests.children import ROOT
from tests.sdk.scripted_api import API

pytestmark = SESSION_LOOP

PAGE = Path(ROOT) / "api/handbook/modal.md"
_NAME = re.compile(r"`([\w-]+)(?:\([^`]*\))?`")


def rows(heading: str) -> list[list[set[str]]]:
    """Names in backquotes in each column of each table row under a heading."""
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[set(_NAME.findall(cell)) for cell in line.split("|")[1:3]] for line in lines]


async def test_every_key_event_step_and_code_is_in_the_reference(page: Page) -> None:
    keys, records, steps, codes, locales = await page.evaluate(
        f"""async () => {{
            const {{KEYS, RECORD_KEYS, LOCALES}} = await import('{API}/source/configuration.js');
            const {{STEPS}} = await import('{API}/source/flow.js');
            const {{CODES}} = await import('{API}/source/errors.js');
            return [Object.keys(KEYS), Object.keys(RECORD_KEYS), STEPS, CODES, LOCALES];
        }}"""
    )
    functions: list[str] = await page.evaluate("Object.keys(frontage)")
    text = PAGE.read_text("utf-8")
    configuration = rows("Configuration")
    assert set().union(*(names for names, _ in configuration)) == set(keys)
    assert next(values for names, values in configuration if names == {"locale"}) == set(locales)
    assert all(f"`{key}`" in text for key in records)
    assert {name for names, _ in rows("Functions") for name in names} == set(functions) - {"version"}
    events = [row for row in rows("Events") if any(name.startswith("on") for name in row[0])]
    assert {name for names, _ in events for name in names} == {key for key in keys if key.startswith("on")}
    shown = {(*names, *status) for names, status in rows("Events") if (names, status) not in map(tuple, events)}
    over = {"review", "undo", "share"}
    assert shown == {(step, of["lastStatus"]) for step, of in steps.items() if step not in over}
    written = re.findall(r"^\| `(\w+)` \| (.+) \|$", text.split("\n## Error codes\n")[1], re.MULTILINE)
    assert dict(written) == codes
