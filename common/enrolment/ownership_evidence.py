"""What the DNS proves about whose a domain is: the questions behind `common.enrolment.ownership`.

Rules
    a name is taken from its holder only by answers of the zones' own servers, asked now
    servers of a zone that answer differently, or cannot be asked, prove nothing
    a holder's cname target keeps the name, unless the holder set it after it had enrolled the name, and after the
        claimant had set the one that the CNAMEs lead through too
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeAlias

from common.db.applications import Application
from common.dns import Pass
from common.enrolment.delegations import FindDelegate
from common.enrolment.eligibility import host_to_ask
from common.enrolment.ownership import OwnershipClaim, OwnershipEvidence, Party, Target, is_proof, txt_record
from common.names import DomainName

FindTargets: TypeAlias = Callable[[Collection[str]], Awaitable[Sequence[Target]]]
"""The cname targets among the names, the one that was set first first."""


def party_of(application: Application, *cname_targets: str) -> Party:
    """Return an application as a party, with all of its targets where none are given."""
    targets = cname_targets or (application.cname_target, application.secure_cname_target)
    return Party(application.id, frozenset(filter(None, targets)), application.organisation_id)


async def find_record_claim(
    questions: Pass, name: DomainName, application_id: str, find_delegate: FindDelegate
) -> OwnershipClaim | None:
    """Return the claim by a record that gives the domain, which no application holds, to this one: TXT or CNAME.

    Of a wildcard by the CNAME alone, the delegation that it has its certificate by.
    """
    host, value = txt_record(name.text, application_id)
    if not name.is_wildcard and value in (await questions.ask_confirmed(host, "TXT")).values:
        return OwnershipClaim.TXT
    delegate = await find_delegate(questions.ask_confirmed, name.text)
    return OwnershipClaim.DELEGATION if delegate.application_id == application_id else None


async def find_evidence(
    questions: Pass,
    name: DomainName,
    claimant: Party,
    holder: Party,
    held_since: datetime | None,
    service_targets: Collection[str],
    find_targets: FindTargets,
    find_delegate: FindDelegate,
) -> OwnershipEvidence:
    """Ask what the zones' own servers answer for `claimant`, about a domain that `holder` holds."""
    ask = questions.authoritative
    chain = await ask.follow(host_to_ask(name), service_targets)
    targets = await find_targets(chain.names)
    record = await ask.ask(txt_record(name.text, claimant.application_id)[0], "TXT")
    delegate = await find_delegate(ask.ask, name.text)
    by_txt = {party: txt_record(name.text, party.application_id)[1] in record.values for party in (claimant, holder)}
    is_proven = is_proof(chain.names, claimant, targets)
    is_outranked = not is_proven and not claimant.cname_targets.isdisjoint(chain.names)
    is_delegated = delegate.application_id == claimant.application_id
    claim = OwnershipClaim.CNAME if is_proven else OwnershipClaim.TXT if by_txt[claimant] else None
    claim = (None if name.is_wildcard else claim) or (OwnershipClaim.DELEGATION if is_delegated else None)
    is_holders = by_txt[holder] or delegate.application_id == holder.application_id
    if is_holders or _leads_to(holder, held_since, chain.names, targets):
        return OwnershipEvidence(claim, holder.application_id, leads_to_holder=True, is_outranked=is_outranked)
    is_known = chain.end.is_known and record.outcome.is_known and delegate.is_known
    leads_to_holder = False if is_known and not (chain.is_disputed or record.is_disputed) else None
    return OwnershipEvidence(claim, holder.application_id, leads_to_holder, is_outranked)


def _leads_to(holder: Party, held_since: datetime | None, way: Collection[str], targets: Sequence[Target]) -> bool:
    own = [target for target in targets if target.application_id == holder.application_id]
    was_led = any(held_since is None or target.set_at <= held_since for target in own)
    return was_led or is_proof(way, holder, targets)
