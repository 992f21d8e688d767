"""Describes each known DNS provider to the modal's picker.

Of each: the words of its form, its guide, and the address of its console."""

from __future__ import annotations

import json
from typing import Any

from common.connect.ways.offers import WORDS
from common.domain_check.providers import Provider, provider_table


def render_provider_forms() -> bytes:
    """Return the providers as a JSON array, by name; those that only park domains have no form."""
    providers = [each for each in provider_table().providers if "(parked)" not in each.name]
    rows = [_form(each) for each in sorted(providers, key=lambda each: each.name.casefold())]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def _form(provider: Provider) -> dict[str, Any]:
    """Describe one provider, without `fieldNames` and `hostStyle` where its own are not known."""
    form: dict[str, Any] = {"id": provider.id, "name": provider.name, "helpUrl": provider.help_url}
    if provider.console_url is not None:
        form["consoleUrl"] = provider.console_url
    if provider.id in WORDS:
        host, value, style = WORDS[provider.id]
        form |= {"fieldNames": {"host": host, "value": value}, "hostStyle": style}
    return form
