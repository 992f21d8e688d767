"""What is done with several domains of the list at once: checked again, or served no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from api.dashboard.access import load_application
from api.dashboard.application_view import parse_body
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import FORM, text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.dashboard.words import count
from api.errors import Refused
from api.rules.application_tokens import is_id
from api.schemas.monitor_bodies import UnwatchBody
from api.schemas.secure import SecureRemoval
from common.accounts import Permission
from common.db.applications import Application
from common.errors import InvalidName
from common.names import DomainName, parse_enrollable

_MOST_CHOSEN = 50
"""As many as a page of the list shows."""
_AT_ONCE = 8


class _Chosen(NamedTuple):
    """A row of the list: a name under a product of an application."""

    product: str
    application: Application
    name: DomainName


class DomainBulk:
    """Handler of the list's buttons. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Carry out the button's action on the chosen domains, each by the service for one domain."""
        chosen = await self._read(request)
        if not chosen:
            return self._redirect(Flash("Choose domains first, by the boxes before their names.", "warn"))
        match text_of(request, "action"):
            case "recheck":
                done = "is checked again now", "are checked again now"
            case "remove" if text_of(request, "typed").strip() != str(len(chosen)):
                return self._context.renderer.page(request, "domains_remove.html", chosen=chosen)
            case "remove":
                done = "is served no longer", "are served no longer"
            case _:
                raise web.HTTPBadRequest
        return self._redirect(await self._act_on(chosen, text_of(request, "action"), done))

    async def _read(self, request: web.Request) -> list[_Chosen]:
        """Return the chosen rows, which the visitor may all change. Raises: `Refused`, HTTPNotFound, HTTPBadRequest."""
        texts = [text for text in request[FORM].getall("chosen", []) if isinstance(text, str)]
        if len(texts) > _MOST_CHOSEN:
            raise web.HTTPBadRequest
        found, known = list[_Chosen](), dict[str, Application]()
        for text in dict.fromkeys(texts):
            product, application_id, name = _parse(text)
            if application_id not in known:
                known[application_id] = await load_application(self._context, application_id)
                visitor_of(request).require(Permission.CHANGE, known[application_id].organisation_id)
            found.append(_Chosen(product, known[application_id], name))
        return found

    async def _act_on(self, chosen: Sequence[_Chosen], action: str, done: tuple[str, str]) -> Flash:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def act(each: _Chosen) -> str | None:
            async with slots:
                try:
                    await self._act(each, action)
                except Refused as error:
                    return f"{each.name}: {error.hint or error.refusal.message}"
            return None

        refusals = [words for words in await asyncio.gather(*map(act, chosen)) if words is not None]
        number = len(chosen) - len(refusals)
        words = f"{count(number, 'domain')} {done[0] if number == 1 else done[1]}."
        if refusals:
            return Flash(f"{words} Not done: {count(len(refusals), 'domain')}. {refusals[0]}", "warn")
        return Flash(words)

    async def _act(self, each: _Chosen, action: str) -> None:
        """Do it with one domain. Raises: `Refused`."""
        context, application, name = self._context, each.application, each.name
        if action == "recheck":
            await context.domain_actions.recheck(application, name)
        elif each.product == "power":
            await context.power.remove(application, name.text)
        elif each.product == "secure":
            await context.secure.remove(application, parse_body(SecureRemoval, {"domain": name.text}))
        else:
            body = {"domain": name.registrable, "subdomain": name.subdomain or None}
            await context.monitor.unwatch(application, parse_body(UnwatchBody, body))

    def _redirect(self, flash: Flash) -> web.StreamResponse:
        return self._context.renderer.redirect(f"{ROOT}/domains", flash)


def _parse(text: str) -> tuple[str, str, DomainName]:
    """Read ``power <application's id> <name>``. Raises: HTTPBadRequest."""
    product, _, rest = text.partition(" ")
    application_id, _, name = rest.partition(" ")
    if product not in ("power", "secure", "monitor") or not is_id(application_id):
        raise web.HTTPBadRequest
    try:
        return product, application_id, parse_enrollable(name)
    except InvalidName as error:
        raise web.HTTPBadRequest from error
