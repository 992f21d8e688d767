"""Ours: `frontage up` with one worker and a powered domain; the edge's tree alone counts and has the proxy's core."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator

from bench.peers import HOST, PROXY_CORE, Serving
from bench.private_stage import private_stage
from bench.process_tree import find_child, pin
from common.cli.walk import Partner, Visitor


class Frontage:
    name = "frontage"
    needs = ()

    @contextlib.asynccontextmanager
    async def serve(self, origin_port: int) -> AsyncIterator[Serving]:
        async with private_stage(EDGE_WORKERS="1", EDGE_HTTPS_REDIRECT="off") as stage:
            settings = stage.settings
            async with Partner.at(settings.base_url, stage.application_id) as partner:
                await partner.sign_in(stage.client_secret)
                await partner.power(HOST, f"http://127.0.0.1:{origin_port}/")
            await Visitor(stage.edge_https_host, settings.edge_https.port, stage.ca_file).get_when(HOST, "xxx")
            edge = find_child(os.getpid(), "-m", "edge")
            pin(edge, PROXY_CORE)
            yield Serving(edge, settings.edge_http.port, settings.edge_https.port)
