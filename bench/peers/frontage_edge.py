"""Ours: `frontage up`, with one worker unless settings differ; the edge's tree alone counts, supervisor included."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from typing import ClassVar

from bench.demo.stage import Stage
from bench.enrolment import EnrolledDomain, enrol, until_applied
from bench.peers import PROXY_CORE, RunningProxy, Sites
from bench.private_stage import private_stage
from bench.process_tree import find_child, pin
from common.db.address import resolve_dsn
from common.db.applications import update_application
from common.db.session import open_session
from common.secrets import load_keyring


class Frontage:
    """Frontage as a peer."""

    name = "Frontage"
    needs: ClassVar[dict[str, str]] = {}

    def __init__(self, *, buffer_uploads_bytes: int | None = None, **settings: str) -> None:
        """Create the peer. `settings` are named without the prefix.

        `buffer_uploads_bytes` is what the application has set with ``--buffer-uploads``.
        """
        self._buffer_uploads_bytes = buffer_uploads_bytes
        self._settings = {"EDGE_WORKERS": "1", "EDGE_HTTPS_REDIRECT": "off"} | settings

    @contextlib.asynccontextmanager
    async def serve(self, sites: Sites) -> AsyncIterator[RunningProxy]:
        """Run everything of `frontage up` for the block, with the sites' domains enrolled."""
        log = {"EDGE_ACCESS_LOG": str(sites.log)} if sites.log else {}
        async with private_stage(**self._settings, **log) as stage:
            settings = stage.settings
            await self._set_options(stage)
            enrolled = await enrol(
                resolve_dsn(settings), load_keyring(settings.key_file), _enrolments(sites, stage.application_id)
            )
            await until_applied(settings.edge_admin, enrolled.version)
            edge = find_child(os.getpid(), "-m", "edge")
            pin(edge, PROXY_CORE)
            yield RunningProxy(edge, settings.edge_http.port, settings.edge_https.port)

    async def _set_options(self, stage: Stage) -> None:
        connection = await open_session(resolve_dsn(stage.settings), "frontage bench")
        try:
            async with connection.transaction():
                await update_application(
                    connection,
                    stage.application_id,
                    buffer_uploads_bytes=self._buffer_uploads_bytes,
                    origin_verify=False,
                )
        finally:
            connection.terminate()


def _enrolments(sites: Sites, application_id: str) -> Iterator[EnrolledDomain]:
    for host, port in sites.origin_ports.items():
        key, begin, chain = sites.certificate(host).read_text().partition("-----BEGIN CERTIFICATE-----")
        url = f"{sites.scheme(host)}://127.0.0.1:{port}/"
        yield EnrolledDomain(host, application_id, url, begin + chain, key)
