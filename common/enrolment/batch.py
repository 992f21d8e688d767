"""Enrolments of many names in one transaction, by an operator's word: an import's.

The rules are those of `enrolling`. New names are gathered and written in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.addresses import AddressPolicy
from common.db import domains, locks, ownership, policies
from common.db.applications import Application
from common.db.domains import NewDomain
from common.db.session import Connection
from common.enrolment import changes, rules
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.ownership import (
    OwnershipClaim,
    OwnershipEvidence,
    OwnershipRecord,
    OwnershipVerdict,
    OwnNames,
    judge_claim,
)
from common.enrolment.redirects import closes_loop
from common.enrolment.request import OPERATOR, EnrolmentRequest

_BY_OPERATOR = OwnershipEvidence(OwnershipClaim.OPERATOR)


class EnrolmentBatch:
    """Enrols names of one application in the caller's transaction: `open` comes first, `flush` last.

    Neither the DNS nor an origin is asked, and no limit applies. With `is_dry` nothing is locked or written.
    """

    def __init__(
        self,
        connection: Connection,
        application: Application,
        own_names: OwnNames,
        addresses: AddressPolicy,
        *,
        is_dry: bool = False,
    ) -> None:
        self._connection = connection
        self._application = application
        self._own_names = own_names
        self._addresses = addresses
        self._is_dry = is_dry
        self._standing: Mapping[str, OwnershipRecord] = {}
        self._new: list[EnrolmentRequest] = []

    async def open(self, requests: Sequence[EnrolmentRequest]) -> None:
        """Lock all the names that the batch is about, in one order, and read whose they are."""
        names = [each.name.text for each in requests]
        if not names:
            return
        if not self._is_dry:
            if any(each.settings.redirect_to for each in requests):
                await domains.lock_redirects(self._connection)
            await locks.hold(self._connection, "domain", *names)
        holders, targets = await ownership.find_taken(self._connection, names)
        blocked = await policies.find_many(self._connection, "domain", names)
        suspension = await policies.find(self._connection, "application", self._application.id)
        own_targets = (self._application.cname_target, self._application.secure_cname_target)
        self._standing = {
            name: OwnershipRecord(
                holder=holders.get(name),
                is_target=name in targets,
                is_own_target=name in own_targets,
                is_blocked=name in blocked,
                is_suspended=suspension is not None,
            )
            for name in names
        }

    async def add(self, request: EnrolmentRequest) -> EnrolmentRefused | None:
        """Enrol a name that the application does not have in this product; return why it is refused, if so."""
        refused = rules.check_settings(request, self._application, (), OPERATOR, self._addresses)
        refused = refused or self._judge(request) or await self._check_loop(request)
        if refused is None and not self._is_dry:
            self._new.append(request)
        return refused

    async def change(self, request: EnrolmentRequest) -> EnrolmentRefused | None:
        """Change the settings that are given; return why they are refused, if so."""
        name, url = request.name.text, request.settings.application_url
        refused = rules.check_served(self._standing[name])
        if refused is None and url is not None:
            refused = rules.check_origin_url(request.product, url, self._addresses)
        refused = refused or await self._check_loop(request)
        if refused is None and not self._is_dry:
            await self.flush()
            await changes.update(self._connection, name, request.product, self._application.id, request.settings)
        return refused

    async def flush(self) -> None:
        """Write the new names gathered so far."""
        new = [NewDomain(each.name.text, each.product, each.settings) for each in self._new]
        self._new.clear()
        if new:
            await changes.enrol_by_hand(self._connection, self._application.id, new)

    def _judge(self, request: EnrolmentRequest) -> EnrolmentRefused | None:
        standing = self._standing[request.name.text]
        verdict = judge_claim(request.name, self._application.id, standing, _BY_OPERATOR, self._own_names)
        return None if verdict is OwnershipVerdict.ENROL else EnrolmentRefused(EnrolmentCode(verdict.value))

    async def _check_loop(self, request: EnrolmentRequest) -> EnrolmentRefused | None:
        redirect_to = request.settings.redirect_to
        if not redirect_to:
            return None
        await self.flush()
        is_loop = await closes_loop(self._connection, request.name.text, redirect_to)
        return EnrolmentRefused(EnrolmentCode.LOOP) if is_loop else None
