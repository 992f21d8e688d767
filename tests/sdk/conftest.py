"""The browser for these tests."""

from tests.browser import chromium

__all__ = ["chromium"]
