"""What needs no token is done in turns of the clients' addresses: a flood of one keeps no other waiting."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from api.admission import Admission
from api.middlewares import authenticated
from api.requests import CLIENT_ADDRESS
from tests.waiting import let_run

BUSY, OTHER = "192.0.2.1", "192.0.2.2"


async def test_a_flood_from_one_address_is_overtaken_by_another() -> None:
    order: list[str] = []
    middleware = authenticated(cast("Any", None), cast("Any", None), Admission())

    async def answer(request: web.Request) -> web.StreamResponse:
        await let_run()
        order.append(request[CLIENT_ADDRESS])
        return web.Response()

    def ask(address: str) -> asyncio.Task[web.StreamResponse]:
        request = make_mocked_request("GET", "/nowhere")
        request[CLIENT_ADDRESS] = address
        return asyncio.create_task(cast("Any", middleware)(request, answer))

    flood = [ask(BUSY) for _ in range(500)]
    await let_run()
    await asyncio.gather(ask(OTHER), *flood)

    assert order.index(OTHER) < 20
    assert len(order) == 501, "none is refused"
