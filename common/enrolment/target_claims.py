"""Target claims: whether the DNS gives an application a cname target that another application has or had.

Rules
    only answers of the zone's own servers, asked now, decide; a zone whose servers differ proves nothing
    a target moves by the TXT record that names the claimant, and not while one names its rival
    an enrolled domain moves as it does for a domain's claim (`common.enrolment.ownership_evidence`)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from common.db import ownership
from common.db.applications import Application, get_application
from common.db.pool import Database
from common.db.target_contests import CnameTargetTaken, TargetContest
from common.dns import Pass, Resolver
from common.enrolment.delegations import find_no_delegate
from common.enrolment.ownership import Target, txt_record
from common.enrolment.ownership_evidence import find_evidence, party_of
from common.logs import get_logger
from common.names import parse_domain

_log = get_logger("common.enrolment.target_claims")

StoreTargets: TypeAlias = Callable[[Collection[TargetContest]], Awaitable[None]]
"""Sets targets in a transaction of its own, with these contests proven. Raises: `CnameTargetTaken`."""


@dataclass(frozen=True, slots=True)
class TargetClaims:
    """Stores cname targets, and asks the DNS about those that are taken. A process makes one.

    Each call takes its application.
    """

    database: Database
    resolver: Resolver
    service_targets: Collection[str]

    async def store(self, application: Application, store: StoreTargets) -> None:
        """Store targets; where some are taken, ask the DNS whose they are.

        They are stored again if the DNS proves all of them to be the application's.

        Raises: `CnameTargetTaken`.
        """
        try:
            await store(())
        except CnameTargetTaken as taken:
            async with self.resolver.open_pass(application.id) as questions:
                for contest in taken.contests:
                    if not await self._is_proven(questions, application, contest):
                        raise
            await store(taken.contests)
            for contest in taken.contests:
                _log.info(
                    "cname target moved to another application",
                    target=contest.target,
                    rival=contest.rival,
                    claimant=application.id,
                )

    async def _is_proven(self, questions: Pass, application: Application, contest: TargetContest) -> bool:
        if contest.rival == application.id:
            return False
        if contest.kind == "domain":
            return await self._is_domain_proven(questions, application, contest)
        host, value = txt_record(contest.target, application.id)
        found = await questions.authoritative.ask(host, "TXT")
        is_rivals = contest.kind == "target" and txt_record(contest.target, contest.rival)[1] in found.values
        return value in found.values and not is_rivals and not found.is_disputed

    async def _is_domain_proven(self, questions: Pass, application: Application, contest: TargetContest) -> bool:
        name = parse_domain(contest.target)
        async with self.database.connection() as connection:
            standing = await ownership.find_standing(connection, name, application.id)
            rival = await get_application(connection, contest.rival)
        if rival is None or standing.holder != rival.id:
            return False
        evidence = await find_evidence(
            questions,
            name,
            party_of(application),
            party_of(rival),
            standing.held_since,
            self.service_targets,
            self._find_targets,
            find_no_delegate,
        )
        return evidence.claim is not None and evidence.claim.is_proof and evidence.leads_to_holder is False

    async def _find_targets(self, names: Collection[str]) -> Sequence[Target]:
        async with self.database.connection() as connection:
            return await ownership.find_targets(connection, names)
