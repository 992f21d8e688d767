"""The browser for these tests."""

from tests.browser import chromium, started_chromium

__all__ = ["chromium", "started_chromium"]
