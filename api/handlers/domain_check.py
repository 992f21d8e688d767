"""Handlers of ``/checkdomain`` and ``/checkrecords``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers import domain_check as answers
from api.errors import Refused, invalid_parameter
from api.requests import ACCESS, application_of, read_body
from api.responses import respond
from api.schemas.domain_check import DomainCheckBody, RecordCheckBody
from api.services.domain_check import DomainCheckService, refuse_tier
from api.services.record_check import RecordCheckService


class DomainCheckHandlers:
    """Handlers of the checks of a domain."""

    def __init__(self, service: DomainCheckService, records: RecordCheckService) -> None:
        self._service = service
        self._records = records

    async def post_domain(self, request: web.Request) -> web.Response:
        """Check a domain before its records are set."""
        application = application_of(request)
        refuse_tier(application)
        body = await read_body(request, DomainCheckBody, context=self._service.placeholder_values(application))
        request[ACCESS].refuse_other_domain(body.domain)
        wants_conflicts = bool(body.check_conflicts)
        if wants_conflicts and not body.records:
            raise Refused(invalid_parameter("dnsRecords"), hint="checkConflicts needs the records to be set")
        found = await self._service.check(
            application, body.domain, body.records, body.certificate_hosts, wants_conflicts=wants_conflicts
        )
        return respond(answers.domain_check(found))

    async def post_records(self, request: web.Request) -> web.Response:
        """Check which records are propagated."""
        application = application_of(request)
        body = await read_body(request, RecordCheckBody, context=self._service.placeholder_values(application))
        request[ACCESS].refuse_other_domain(body.domain)
        checked = await self._records.check(application.id, body.domain, body.records)
        return respond(answers.record_check(body.domain, checked))
