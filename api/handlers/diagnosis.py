"""``GET /domains/:domain/diagnosis``: what is wrong with a domain, and what to do next."""

from __future__ import annotations

from aiohttp import web

from api.answers.diagnosis import diagnosis_answer
from api.requests import application_of
from api.responses import respond
from api.schemas import queries
from api.services.diagnosis import DiagnosisService
from api.services.next_step import next_step
from common.clock import Clock


class DiagnosisHandler:
    """Handler of the diagnosis."""

    def __init__(self, service: DiagnosisService, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def get(self, request: web.Request) -> web.Response:
        """Diagnose a domain."""
        name = queries.parse_name(request.match_info["domain"])
        diagnosis = await self._service.diagnose(application_of(request), name)
        now = self._clock.now()
        return respond(diagnosis_answer(diagnosis, next_step(diagnosis, now), now))
