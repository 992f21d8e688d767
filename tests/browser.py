"""A real browser: Debian's Chromium, driven by Playwright. `tests.__main__` installs it without its own windows
(``chromium-headless-shell``): whole Chromium draws these for each page too, and takes five times the CPU time.

`chromium` is one browser for the session, as it takes seconds to start: a test opens contexts of its own in it, which
are closed after it, and has the mark `SESSION_LOOP`, the loop in which the browser lives. `screenshot` writes what is
seen to ``tests/output/``; `axe` asks axe-core what is wrong for people without sight, mouse or colours.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

OUTPUT = Path(__file__).parent / "output"
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
_ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb")


SESSION_LOOP = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def started_chromium() -> AsyncIterator[Browser]:
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("without Debian's chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def chromium(started_chromium: Browser) -> AsyncIterator[Browser]:
    yield started_chromium
    for context in started_chromium.contexts:
        await context.close()


async def screenshot(page: Page, name: str) -> Path:
    """Returns where it is: ``tests/output/<name>.png``."""
    path = OUTPUT / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=path, animations="disabled")
    return path


async def axe(page: Page) -> list[str]:
    """What axe-core finds, one line each; nothing on a good page. Frames and shadow roots are looked into."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    # Only what is wrong is described and comes back: what is right took three times as long to bring here as to find.
    found: list[str] = await page.evaluate(
        """async tags => {
            const options = {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']};
            const {violations} = await axe.run(document, options);
            return violations.flatMap(({id, nodes}) =>
                nodes.map(({target, failureSummary}) => `${id}: ${JSON.stringify(target)} ${failureSummary}`));
        }""",
        list(WCAG),
    )
    return found
