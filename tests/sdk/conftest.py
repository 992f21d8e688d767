"""The browser for these tests, and a partner's page in it."""

from __future__ import annotations

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.browser import chromium, started_chromium
from tests.sdk.scripted_api import ScriptedApi, open_page

__all__ = ["chromium", "started_chromium"]


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: Browser, api: ScriptedApi) -> Page:
    """A partner's page whose SDK talks with `api`."""
    return await open_page(await chromium.new_context(), api)
