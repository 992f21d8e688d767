"""Handlers of ``/checkdomain`` and ``/checkrecords``: they parse, call the service and respond."""

from __future__ import annotations

from typing import TypeVar

from aiohttp import web

from api.answers import domain_check as answers
from api.errors import Refused, invalid_body, invalid_parameter
from api.requests import ACCESS, application_of, read_body
from api.responses import respond
from api.schemas.bodies import check_body
from api.schemas.domain_check import CheckedBody, ConfiguredBody, DomainCheckBody, RecordCheckBody
from api.services.configurations import ConfigurationService, complete, named_configuration
from api.services.domain_check import DomainCheckService, refuse_tier
from api.services.record_check import RecordCheckService

_Checked = TypeVar("_Checked", bound=CheckedBody)


class DomainCheckHandlers:
    """Handlers of the checks of a domain."""

    def __init__(
        self, service: DomainCheckService, records: RecordCheckService, configurations: ConfigurationService
    ) -> None:
        self._service = service
        self._records = records
        self._configurations = configurations

    async def post_domain(self, request: web.Request) -> web.Response:
        """Check a domain before its records are set."""
        application = application_of(request)
        refuse_tier(application)
        body = await self._read(request, DomainCheckBody)
        wants_conflicts = bool(body.check_conflicts)
        if wants_conflicts and not body.records:
            raise Refused(invalid_parameter("dnsRecords"), hint="checkConflicts needs the records to be set")
        found = await self._service.check(
            application, body.domain, body.records, body.certificate_hosts, wants_conflicts=wants_conflicts
        )
        return respond(answers.domain_check(found))

    async def post_records(self, request: web.Request) -> web.Response:
        """Check which records are propagated."""
        body = await self._read(request, RecordCheckBody)
        checked = await self._records.check(application_of(request).id, body.domain, body.records)
        return respond(answers.record_check(body.domain, checked))

    async def _read(self, request: web.Request, schema: type[_Checked]) -> _Checked:
        """Return the body, on the registered configuration that it or its token names. Raises: `Refused`."""
        access, application = request[ACCESS], application_of(request)
        sent = await read_body(request, ConfiguredBody)
        given = sent.given
        configuration_id = named_configuration(access, sent.configuration_id)
        if configuration_id is not None:
            registered = await self._configurations.find(application, configuration_id)
            given = complete(access, registered.config, given)
        context = self._service.placeholder_values(application)
        body = check_body(given, schema, invalid_body(request.method, request.path), context=context)
        access.refuse_other_domain(body.domain)
        return body
