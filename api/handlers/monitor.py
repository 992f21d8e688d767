"""Handlers of ``/monitor``: they parse, call the service and respond."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from api.answers import monitor as answers
from api.errors import MISSING_DOMAINS, NOT_MONITORED_OR_FOREIGN, Refused
from api.requests import LARGEST_BATCH_BYTES, application_of, read_body
from api.responses import respond, respond_message, stream
from api.schemas import list_cursor, monitor_queries, queries
from api.schemas.monitor_bodies import (
    BatchBody,
    RecordsBody,
    RemovedRecordsBody,
    UnwatchBody,
    UpdateBody,
    WatchBody,
)
from api.services.batches import BatchService
from api.services.monitor import MonitorService
from common.db.monitored_domains import MonitoredKey

ADDED = "Domain successfully added"
UPDATED = "Domain successfully updated."
DELETED = "Domain successfully deleted"
RECORDS_UPDATED = "DNS Records successfully updated"
RECORDS_DELETED = "DNS record(s) successfully deleted"


class MonitorHandlers:
    """Handlers of monitored domains."""

    def __init__(self, service: MonitorService) -> None:
        self._service = service

    async def post(self, request: web.Request) -> web.Response:
        """Monitor a domain."""
        await self._service.watch(application_of(request), await read_body(request, WatchBody))
        return respond_message(ADDED, 201)

    async def put(self, request: web.Request) -> web.Response:
        """Replace the records of a domain."""
        await self._service.update(application_of(request), await read_body(request, UpdateBody))
        return respond_message(UPDATED)

    async def delete(self, request: web.Request) -> web.Response:
        """Monitor a domain no longer."""
        await self._service.unwatch(application_of(request), await read_body(request, UnwatchBody))
        return respond_message(DELETED)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """List monitored domains, or show one."""
        if "domain" in request.query:
            found = await self._service.find(_key(request, queries.parse_text(request.query, "domain")))
            return respond(answers.monitored_domain(found))
        query = monitor_queries.parse_monitor_query(request.query)
        rest: dict[str, Any]
        show = answers.monitored_domain
        if isinstance(query, queries.PartQuery):
            show = answers.monitored_domain_with_times
            page, following = await self._service.list_part(application_of(request), query)
            rest = {"page": 0, "next": list_cursor.to_text(following, query.sort)}
        else:
            page, rest = await self._service.list_page(application_of(request), query), {"page": query.offset}
        return await stream(request, "domains", map(show, page), rest | {"totalItems": len(page)})

    async def get_one(self, request: web.Request) -> web.Response:
        """Show a monitored domain."""
        return respond(answers.monitored_domain(await self._service.find(_key_of_path(request))))

    async def get_checks(self, request: web.Request) -> web.Response:
        """Show what the last check of a domain went by."""
        key = _key_of_path(request)
        return respond(answers.last_check(key, await self._service.find_last_check(key)))

    async def get_records(self, request: web.Request) -> web.Response:
        """List the records of a domain."""
        found = await self._service.find(_key_of_path(request))
        return respond(answers.dns_records(found.dns_records))

    async def post_records(self, request: web.Request) -> web.Response:
        """Add records."""
        key = _key_of_path(request)
        body = await read_body(request, RecordsBody, context=key.domain)
        await self._service.add_records(key, body)
        return respond_message(RECORDS_UPDATED)

    async def put_records(self, request: web.Request) -> web.Response:
        """Replace all records."""
        key = _key_of_path(request)
        body = await read_body(request, RecordsBody, context=key.domain)
        await self._service.replace_records(key, body)
        return respond_message(RECORDS_UPDATED, 201)

    async def delete_records(self, request: web.Request) -> web.Response:
        """Remove some records."""
        body = await read_body(request, RemovedRecordsBody)
        await self._service.remove_records(_key_of_path(request), body)
        return respond_message(RECORDS_DELETED)

    async def get_status(self, _: web.Request) -> web.Response:
        """Show whether the checks themselves are well."""
        return respond(answers.service_status(await self._service.health()))


class BatchHandlers:
    """Handlers of batches."""

    def __init__(self, service: BatchService) -> None:
        self._service = service

    async def post(self, request: web.Request) -> web.Response:
        """Take a batch that monitors domains."""
        return _accepted(await self._service.create(application_of(request), await _read_batch(request)))

    async def delete(self, request: web.Request) -> web.Response:
        """Take a batch that monitors domains no longer."""
        return _accepted(await self._service.delete(application_of(request), await _read_batch(request)))

    async def get_status(self, request: web.Request) -> web.Response:
        """Show how far a batch is."""
        batch_id = request.match_info["request_id"]
        progress = await self._service.progress(application_of(request), batch_id)
        return respond(answers.batch_status(batch_id, progress))


async def _read_batch(request: web.Request) -> BatchBody:
    return await read_body(request, BatchBody, not_understood=MISSING_DOMAINS, most_bytes=LARGEST_BATCH_BYTES)


def _accepted(batch_id: str) -> web.Response:
    return respond(answers.submitted(batch_id), 201)


def _key_of_path(request: web.Request) -> MonitoredKey:
    """Return the monitored name of the path and the query. Raises: `Refused`."""
    return _key(request, request.match_info["domain_name"])


def _key(request: web.Request, domain: str) -> MonitoredKey:
    """Return the monitored name of a domain and the query. Raises: `Refused`."""
    name = monitor_queries.parse_name_query(domain, request.query)
    if name is None:
        raise Refused(NOT_MONITORED_OR_FOREIGN)
    return MonitoredKey(application_of(request).id, *name)
