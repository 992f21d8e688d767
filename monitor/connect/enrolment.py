"""Enrolment: what a flow's live records enrol their names in, each once.

Each name and product is one transaction that holds the flow under its fence, so that the enrolment and the note of it
become true together: after a kill -9 the next claim goes on with the next one. A name that may not be enrolled fails
with a code and a hint; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from common.actors import Actor, acting
from common.addresses import AddressPolicy
from common.connect.requested import Requested
from common.connect.rights import is_own_enrolment
from common.db import connect_flows, domains, monitored_domains
from common.db.applications import Application, get_application
from common.db.connect_flows import Flow
from common.db.domains import AlreadyEnrolled, Domain, EnrolledTooOften
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Connection, Database
from common.domain_claims import Assessment, DomainClaims, StandingChanged
from common.errors import AddressRefused, FrontageError, InvalidName
from common.names import DomainName, parse_domain
from common.origin_probe import OriginProbe, Unreachable
from common.ownership import OwnershipClaim, OwnershipVerdict
from common.records import as_json, from_json
from common.urls import parse_application_url

_MOST_TRIES = 3

_HINTS: Mapping[str, str] = {
    "reserved": "it is one of our own names, or the application's own cname target",
    "domain_blocked": "the operator of the service has blocked the name",
    "application_suspended": "the operator of the service has suspended the application",
    "txt_record_needed": "it leads here, but nothing shows whose it is: see the ownership of domains",
    "held": "another application holds the name",
    "leads_to_holder": "another application holds the name, and its DNS leads to that one",
    "held_unknown": "another application holds the name, and its DNS could not be asked",
    "not_eligible": "the records are live, but do not lead to the application: see the diagnosis of the domain",
    "step_one": "the application's cname target does not lead to this service",
    "enrolled_too_often": "it was enrolled five times within 24 hours",
    "loop": "the redirect leads back to the domain",
    "origin_path": "the certificate's origin is given without a path: requests keep theirs",
    "origin_refused": "the applicationUrl's address is not public",
    "origin_unreachable": "the applicationUrl does not answer",
    "no_origin": "neither the record nor the application has an applicationUrl",
    "not_a_domain": "no name that can be enrolled",
    "already_enrolled": "it is enrolled already, with other settings: only the application's server changes them",
    "outside_configuration": "it would lead to what is neither the application's own nor in a registered configuration",
    **connect_flows.ENDS,
}


class _Failed(FrontageError):
    def __init__(self, code: str) -> None:
        super().__init__(_HINTS[code])
        self.code = code


def enrolments_of(flow: Flow) -> list[dict[str, Any]]:
    """What is to be done, in order: products by name, then what is monitored."""
    assert flow.domain is not None
    requested = [Requested.from_json(each) for each in flow.requested]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in requested:
        name, purpose = each.name(flow.domain), each.purpose
        if purpose.product is not None:
            found.setdefault(
                (purpose.product, name),
                {
                    "product": purpose.product,
                    "name": name,
                    "status": "pending",
                    "applicationUrl": purpose.application_url,
                    "redirectTo": purpose.redirect_to,
                    "powerRootPathAccess": purpose.root_path_access,
                },
            )
    watched = [each for each in requested if each.purpose.is_monitored]
    if watched:
        found["monitor", flow.host or ""] = {
            "product": "monitor",
            "name": flow.host,
            "subdomain": flow.subdomain,
            "status": "pending",
            "records": [as_json(each.record) for each in watched],
        }
    return list(found.values())


@dataclass(frozen=True, slots=True)
class FlowEnrolment:
    """One a process."""

    database: Database
    claims: DomainClaims
    policy: AddressPolicy
    probe_origin: OriginProbe
    https_url: Callable[[str], str]
    """Where a browser opens an enrolled name."""

    async def enrol(self, flow: Flow) -> Flow:
        """Do all that is pending, as changes of the application's. Raises: `FenceLost`, `DatabaseUnavailable`."""
        async with self.database.connection() as connection:
            application = await get_application(connection, flow.application_id)
        with acting(Actor("api", flow.application_id, flow.request_id or flow.id)):
            for number, each in enumerate(flow.enrolments):
                if each["status"] == "pending" and application is not None:
                    flow = await self._enrol_one(flow, application, number)
        return flow

    async def _enrol_one(self, flow: Flow, application: Application, number: int) -> Flow:
        wanted = flow.enrolments[number]
        try:
            if wanted["product"] == "monitor":
                return await self._watch(flow, number)
            return await self._enrol_name(flow, application, number)
        except _Failed as error:
            async with self.database.transaction() as connection:
                return await _note(connection, flow, number, status="failed", code=error.code, hint=str(error))

    async def _watch(self, flow: Flow, number: int) -> Flow:
        wanted = flow.enrolments[number]
        assert flow.domain is not None
        key = MonitoredKey(flow.application_id, flow.domain, flow.subdomain)
        records = tuple(map(from_json, wanted["records"]))
        labels, unchanged = Labels(flow.user_id, flow.job_id), {}
        async with self.database.transaction() as connection:
            await _refuse_ended(connection, flow)
            if not flow.by_browser:
                await monitored_domains.watch_more(connection, key, records, labels, vouched=flow.vouched)
            else:
                found = await monitored_domains.watch_new(connection, key, records, labels, vouched=flow.vouched)
                if found == "other":
                    raise _Failed("already_enrolled")
                unchanged = {"unchanged": True} if found == "watched" else {}
            return await _note(connection, flow, number, status="success", **unchanged)

    async def _enrol_name(self, flow: Flow, application: Application, number: int) -> Flow:
        """Raises: `_Failed`."""
        wanted = flow.enrolments[number]
        name = _parsed(wanted["name"])
        target = application.cname_target
        if not flow.vouched and not is_own_enrolment(wanted, application, flow.host):
            raise _Failed("outside_configuration")
        if flow.by_browser:
            async with self.database.connection() as connection:  # before its origin is asked; again when it is stored
                await _is_enrolled(connection, application, name, wanted)
        self._refuse_address(wanted["applicationUrl"])
        if wanted["product"] == "secure":
            await self._check_origin(application, name, wanted)
            target = application.secure_cname_target or target
        for _ in range(_MOST_TRIES):
            assessment = await self.claims.assess(application, name, target)
            _refuse(assessment)
            with suppress(StandingChanged):
                async with self.claims.claimed(
                    application, name, assessment.evidence, wanted["redirectTo"] is not None
                ) as connection:
                    await _refuse_ended(connection, flow)
                    if not flow.by_browser or not await _is_enrolled(connection, application, name, wanted):
                        await self._store(connection, application, name, wanted, assessment.evidence.claim)
                    return await _note(connection, flow, number, status="success", url=self.https_url(name.text))
        raise _Failed("held_unknown")

    def _refuse_address(self, application_url: str | None) -> None:
        """Raises: `_Failed` for an address that is written in the URL; names are checked when they are dialled."""
        if application_url is None:
            return
        url = parse_application_url(application_url)
        try:
            if url.address is not None:
                self.policy.check(url.address, url.port)
        except AddressRefused as error:
            raise _Failed("origin_refused") from error

    async def _check_origin(self, application: Application, name: DomainName, wanted: Mapping[str, Any]) -> None:
        """As for ``POST /ssl``: where a name is not redirected, its origin must answer. Raises: `_Failed`."""
        url = wanted["applicationUrl"] or (None if wanted["redirectTo"] else application.application_url)
        if not url:
            if wanted["redirectTo"] is None:
                raise _Failed("no_origin")
            return
        if parse_application_url(url).path not in ("", "/"):
            raise _Failed("origin_path")
        self._refuse_address(url)
        try:
            await self.probe_origin(url, name.text, application)
        except Unreachable as error:
            raise _Failed("origin_unreachable") from error

    async def _store(
        self,
        connection: Connection,
        application: Application,
        name: DomainName,
        wanted: Mapping[str, Any],
        claim: OwnershipClaim | None,
    ) -> None:
        """A name that has the product already keeps it, with what this flow asks for. Raises: `_Failed`."""
        url, redirect_to = wanted["applicationUrl"], wanted["redirectTo"]
        if redirect_to is not None and await domains.closes_loop(connection, name.text, redirect_to):
            raise _Failed("loop")
        try:
            if await domains.has(connection, name.text, wanted["product"], application.id):
                await _change(connection, application, name, wanted)
            elif wanted["product"] == "power":
                await domains.power(connection, name.text, application.id, url, wanted["powerRootPathAccess"], claim)
            else:
                await domains.secure(connection, name.text, application.id, url, redirect_to, claim)
        except AlreadyEnrolled as error:
            raise _Failed("held") from error
        except EnrolledTooOften as error:
            raise _Failed("enrolled_too_often") from error


async def _is_enrolled(
    connection: Connection, application: Application, name: DomainName, wanted: Mapping[str, Any]
) -> bool:
    """Return whether the name is enrolled as wanted; False where it is not enrolled at all.

    Raises: `_Failed` where it is enrolled otherwise, in whichever product: a browser's flow changes nothing of it.
    """
    enrolled = [each for each in await domains.find(connection, name.text) if each.application_id == application.id]
    if not enrolled:
        return False
    if not any(each.product == wanted["product"] and _is_as_wanted(each, wanted) for each in enrolled):
        raise _Failed("already_enrolled")
    return True


def _is_as_wanted(enrolled: Domain, wanted: Mapping[str, Any]) -> bool:
    url, paths, redirect_to = wanted["applicationUrl"], wanted["powerRootPathAccess"], wanted["redirectTo"]
    return (
        (url is None or url == enrolled.application_url)
        and (paths is None or tuple(paths) == enrolled.root_path_access)
        and (redirect_to is None or redirect_to == enrolled.redirect_to)
    )


async def _refuse_ended(connection: Connection, flow: Flow) -> None:
    """Raises: `_Failed` where what the flow came from was taken back."""
    end = await connect_flows.find_end(connection, flow.id, locks=True)
    if end is not None:
        raise _Failed(end)


async def _change(
    connection: Connection, application: Application, name: DomainName, wanted: Mapping[str, Any]
) -> None:
    url = wanted["applicationUrl"]
    if wanted["product"] == "power":
        await domains.update_power(connection, name.text, application.id, url, wanted["powerRootPathAccess"])
    else:
        await domains.update_secure(connection, name.text, application.id, url, wanted["redirectTo"])


def _parsed(text: str) -> DomainName:
    try:
        return parse_domain(text)
    except InvalidName as error:
        raise _Failed("not_a_domain") from error


def _refuse(assessment: Assessment) -> None:
    """Raises: `_Failed`."""
    if assessment.verdict not in (OwnershipVerdict.ENROL, OwnershipVerdict.MOVE):
        raise _Failed(assessment.verdict.value)
    if assessment.findings.lacks_step_one:
        raise _Failed("step_one")
    if not assessment.findings.is_eligible:
        raise _Failed("not_eligible")


async def _note(connection: Connection, flow: Flow, number: int, **fields: str | bool) -> Flow:
    """In the caller's transaction. Raises: `FenceLost`."""
    enrolments: Sequence[dict[str, Any]] = [dict(each) for each in flow.enrolments]
    enrolments[number] |= fields
    return await connect_flows.note(connection, flow, enrolments=enrolments)
