"""The search over everything that a visitor may see: applications, domains, and pages of the dashboard."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.visitors import visitor_of
from common.db import applications, domain_list
from common.db.applications import Application
from common.db.domain_list_query import DomainListQuery
from common.errors import InvalidName
from common.metadata import read_note
from common.names import parse_domain

_LONGEST_TEXT = 253
_MOST_APPLICATIONS = 5
_MOST_DOMAINS = 8
_PAGES = {
    "Overview": "",
    "Applications": "/applications",
    "Domains": "/domains",
    "Audit log": "/audit",
    "Account: password, passkeys, API keys, sessions": "/account",
}
_PAGES_OF_APPLICATION = {
    "Settings: origin, webhook, root paths, HTTP/2, responses, maintenance, error page, delete": "/settings",
    "Secrets: client secret, webhook secret, X-Service-Auth, signature": "/secrets",
    "Webhooks: deliveries, test event": "/webhooks",
    "Connecting: flows, funnel": "/connecting",
    "Ended domains": "/ended",
    "Add domain": "/domains/new",
    "Audit log": "/audit",
}


class SearchHandler:
    """Handler of the search. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Render what is found for ``q``: a fragment."""
        typed = request.query.get("q", "").strip()[:_LONGEST_TEXT]
        text, note = typed.lower(), read_note(typed)
        organisations = visitor_of(request).visible_organisation_ids
        async with self._context.database.connection() as connection:
            found = await applications.list_visible(connection, organisations, text=text, most=_MOST_APPLICATIONS)
            nearest = found or await applications.list_visible(connection, organisations, most=_MOST_APPLICATIONS)
            ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
            rows = (
                (
                    await domain_list.list_part(
                        connection, DomainListQuery(ids, text=text, note=note, limit=_MOST_DOMAINS)
                    )
                ).rows
                if text
                else []
            )
        pages = _find_pages(text, nearest[:1]) + _find_connections(text, nearest)
        part = self._context.renderer.fragment("_found.html", applications=found, rows=rows, pages=pages, text=text)
        return web.Response(text=part, content_type="text/html")


def _find_connections(text: str, of: list[Application]) -> list[tuple[str, str]]:
    """Return words and paths of the pages that list who is connecting that domain; none for other text."""
    try:
        name = parse_domain(text)
    except InvalidName:
        return []
    return [
        (f"Who is connecting {name} ({each.name})", f"{ROOT}/applications/{each.id}/connecting?domain={name}")
        for each in of
    ]


def _find_pages(text: str, of: list[Application]) -> list[tuple[str, str]]:
    """Return words and paths of the pages whose words have `text` in them; of an application, the nearest one's."""
    pages = [(words, f"{ROOT}{path}") for words, path in _PAGES.items()]
    for each in of:
        base = f"{ROOT}/applications/{each.id}"
        pages += [(f"{words} ({each.name})", f"{base}{path}") for words, path in _PAGES_OF_APPLICATION.items()]
    return [(words, path) for words, path in pages if text in words.lower()][:_MOST_DOMAINS]
