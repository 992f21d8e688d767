"""The page that a person's browser returns to from a Domain Connect provider.

It closes its window by a script of the SDK (`api/sdk/returned.js`), since the modal in the other window goes on by
itself. Nothing that the provider sent is on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from api.pages import share

_PAGE = Template((Path(__file__).parent / "connect_return.html").read_text("utf-8"))
_SCRIPT = '<script src="../../sdk/v1/returned.js" defer></script>'

HEADERS: Mapping[str, str] = {name: value for name, value in share.HEADERS.items() if name != "Vary"}


def render(*, is_taken: bool) -> str:
    """`is_taken`: the return belongs to a flow that waited for it."""
    if is_taken:
        title, text, script = (
            "You can close this window",
            "The set-up goes on in the window that you came from.",
            _SCRIPT,
        )
    else:
        title, script = "Nothing to do here", ""
        text = "This address was used already, or is not whole. Go back to the window that you came from."
    return _PAGE.substitute(css=share.CSS, title=title, text=text, script=script)
