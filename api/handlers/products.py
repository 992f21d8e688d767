"""What the handlers of Power and Secure share: the list of a product's domains, and the answer to a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from api.answers.domain_details import DomainDetails
from api.answers.lists import list_of, page_of
from api.notices import Notice
from api.requests import application_of, prefers_representation
from api.responses import respond, respond_change, respond_message
from api.schemas import list_cursor, queries
from api.services.enrolment import EnrolmentService
from common.db.domain_pages import ListedDomain
from common.db.domains import Product


@dataclass(frozen=True, slots=True)
class ProductDomains:
    """The domains of a product, each rendered by `render`."""

    product: Product
    enrolment: EnrolmentService
    render: Callable[[ListedDomain], DomainDetails]

    async def respond_list(self, request: web.Request) -> web.Response:
        """Answer a page of the application's domains, or a part of a sorted or searched list."""
        application, query = application_of(request), queries.parse_list_query(request.query)
        if isinstance(query, queries.MetadataQuery):
            found, after = await self.enrolment.list_by_metadata(application, self.product, query)
            return respond(list_of(self._rendered(found), after, query.size))
        if isinstance(query, queries.PartQuery):
            part = await self.enrolment.list_part(application, self.product, query)
            following = list_cursor.to_text(part.next, query.sort)
            return respond(list_of(self._rendered(part.items), following, query.size))
        page = await self.enrolment.list_page(application, self.product, query)
        return respond(page_of(self._rendered(page.items), page.total, query))

    async def respond_changed(self, request: web.Request, domain: str, text: str, noted: list[Notice]) -> web.Response:
        """Answer a change with its message, or with the domain where the client prefers that (RFC 7240 §4.2)."""
        if prefers_representation(request):
            changed = await self.enrolment.find_listed(application_of(request), self.product, domain)
            if changed is not None:
                return respond_change(self.render(changed), noted)
        return respond_message(text, notices=noted)

    def _rendered(self, domains: Iterable[ListedDomain]) -> list[Any]:
        return list(map(self.render, domains))
