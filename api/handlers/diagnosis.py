"""``GET /domains/:domain/diagnosis``: what is wrong with a domain, and what to do next."""

from __future__ import annotations

from aiohttp import web

from api.requests import application_of
from api.schemas import answers, queries
from api.services.diagnosis import DiagnosisService
from api.services.diagnosis_answer import rendered
from api.services.next_step import next_step
from common.clock import Clock


class DiagnosisHandler:
    def __init__(self, service: DiagnosisService, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def get(self, request: web.Request) -> web.Response:
        name = queries.parse_name(request.match_info["domain"])
        diagnosis = await self._service.diagnose(application_of(request), name)
        now = self._clock.now()
        return answers.respond(rendered(diagnosis, next_step(diagnosis, now), now))
