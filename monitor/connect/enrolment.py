"""Enrolment: what a flow's live records enrol their names in, each once.

Each name and product is one transaction that holds the flow under its fence, so that the enrolment and the note of it
become true together: after a kill -9 the next claim goes on with the next one. A name that may not be enrolled fails
with a code and a hint; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from common import monitored_changes
from common.actors import Actor, acting
from common.connect.rights import is_own_enrolment
from common.db import connect_flows, flow_ends
from common.db.applications import Application, get_application
from common.db.connect_flows import Flow
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Connection, Database
from common.enrolment.enrolling import Enrolling
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.refusal_words import WORDS
from common.enrolment.request import BROWSER_FLOW, FLOW, EnrolmentRequest
from common.errors import FrontageError, InvalidName
from common.flows.enrolments import Enrolment, MonitorEnrolment, ProductEnrolment
from common.names import DomainName, parse_enrollable

_OWN_HINTS: Mapping[str, str] = {
    "not_a_domain": "it is not a name that can be enrolled: check its spelling",
    "already_enrolled": WORDS[EnrolmentCode.ENROLLED_OTHERWISE].person,
    "outside_configuration": "it would lead elsewhere than the application's settings or a registered configuration do:"
    " have the application's server register the configuration",
    **flow_ends.ENDS,
}
"""Of what only flows refuse."""


class _Failed(FrontageError):
    """A name that is not enrolled, with a code of `_OWN_HINTS`."""

    def __init__(self, code: str) -> None:
        super().__init__(_OWN_HINTS[code])
        self.code = code


@dataclass(frozen=True, slots=True)
class FlowEnrolment:
    """Enrolls the names of flows. One instance per process."""

    database: Database
    enrolling: Enrolling
    https_url: Callable[[str], str]
    """Where a browser opens an enrolled name."""

    async def enrol(self, flow: Flow) -> Flow:
        """Do all pending enrolments, as changes that the application makes, and return the flow with their outcomes.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        async with self.database.connection() as connection:
            application = await get_application(connection, flow.application_id)
        with acting(Actor("api", flow.application_id, flow.request_id or flow.id)):
            for number, each in enumerate(flow.enrolments):
                if each.status == "pending" and application is not None:
                    flow = await self._enrol_one(flow, application, number)
        return flow

    async def _enrol_one(self, flow: Flow, application: Application, number: int) -> Flow:
        """Do one enrolment, or record why it failed."""
        wanted = flow.enrolments[number]
        try:
            if isinstance(wanted, MonitorEnrolment):
                return await self._watch(flow, wanted, number)
            return await self._enrol_name(flow, application, wanted, number)
        except _Failed as error:
            return await self._fail(flow, number, error.code, str(error))

    async def _fail(self, flow: Flow, number: int, code: str, hint: str) -> Flow:
        """Record that an enrolment failed."""
        async with self.database.transaction() as connection:
            failed = replace(flow.enrolments[number], status="failed", code=code, hint=hint)
            return await _note(connection, flow, number, failed)

    async def _watch(self, flow: Flow, wanted: MonitorEnrolment, number: int) -> Flow:
        """Have the records of the flow's host monitored.

        Raises: `_Failed`.
        """
        assert flow.domain is not None
        key = MonitoredKey(flow.application_id, flow.domain, flow.subdomain)
        records, labels, is_unchanged = wanted.records, Labels(flow.user_id, flow.job_id), False
        async with self.database.transaction() as connection:
            await _refuse_ended(connection, flow)
            if not flow.by_browser:
                await monitored_changes.watch_more(connection, key, records, labels, vouched=flow.vouched)
            else:
                found = await monitored_changes.watch_new(connection, key, records, labels, vouched=flow.vouched)
                if found == "other":
                    raise _Failed("already_enrolled")
                is_unchanged = found == "watched"
            done = replace(wanted, status="success", is_unchanged=is_unchanged)
            return await _note(connection, flow, number, done)

    async def _enrol_name(self, flow: Flow, application: Application, wanted: ProductEnrolment, number: int) -> Flow:
        """Enrol a name in Power or Secure.

        Raises: `_Failed`.
        """
        request = EnrolmentRequest(wanted.product, _parsed(wanted.name), wanted.settings)
        if not flow.vouched and not is_own_enrolment(wanted, application, flow.host):
            raise _Failed("outside_configuration")
        noted = flow

        async def note(connection: Connection) -> None:
            nonlocal noted
            await _refuse_ended(connection, flow)
            url = self.https_url(request.name.text)
            noted = await _note(connection, flow, number, replace(wanted, status="success", url=url))

        policy = BROWSER_FLOW if flow.by_browser else FLOW
        outcome = await self.enrolling.enrol(application, request, policy, beside=note)
        if isinstance(outcome, EnrolmentRefused):
            return await self._fail(flow, number, outcome.code.value, WORDS[outcome.code].person)
        return noted


async def _refuse_ended(connection: Connection, flow: Flow) -> None:
    """Refuse a flow whose link, configuration, key or secret was taken back.

    Raises: `_Failed`.
    """
    end = await flow_ends.find_end(connection, flow.id, locks=True)
    if end is not None:
        raise _Failed(end)


def _parsed(text: str) -> DomainName:
    """Parse the name.

    Raises: `_Failed`.
    """
    try:
        return parse_enrollable(text)
    except InvalidName as error:
        raise _Failed("not_a_domain") from error


async def _note(connection: Connection, flow: Flow, number: int, enrolment: Enrolment) -> Flow:
    """Store the outcome of one enrolment in the caller's transaction.

    Raises: `FenceLost`.
    """
    enrolments = [*flow.enrolments]
    enrolments[number] = enrolment
    return await connect_flows.note(connection, flow, enrolments=enrolments)
